"""Show tensors in marimo: `pip install marimo`, then `marimo run examples/6-marimo.py` or `marimo edit`."""

import marimo

app = marimo.App(app_title="tensornp in marimo")


@app.cell
def _():
    import marimo as mo
    import torch

    import tensornp as tnp

    # Like %load_ext tensornp in Jupyter.
    tnp.install()
    return mo, tnp, torch


@app.cell
def _(mo):
    mo.md("""
    # Tensors in marimo

    Each cell below ends in an object. marimo shows it as Jupyter does, without magics.
    """)
    return


@app.cell
def _(mo):
    scale = mo.ui.slider(1, 6, value=1, label="times 10 to the power of")
    scale
    return (scale,)


@app.cell
def _(scale, torch):
    # The largest values overflow float16 at 5 and 6.
    torch.manual_seed(0)
    half = (torch.randn(6, 8) * 10**scale.value).half()
    half
    return (half,)


@app.cell
def _(half, torch):
    batch = {"tokens": torch.arange(12).reshape(3, 4), "values": half.float(), "labels": [torch.tensor(1), "none"]}
    batch
    return


@app.cell
def _(mo):
    mo.md("""A live card: choose view, share or copy, and browse its **Values**.""")
    return


@app.cell
def _(half, tnp):
    tnp.TensorWidget(half)
    return


@app.cell
def _(mo):
    mo.md("""The weights of a model. Press **Read values** for statistics, or click on a weight for its values.""")
    return


@app.cell
def _(tnp, torch):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    tnp.weights(model)
    return (model,)


@app.cell
def _(mo):
    mo.md("""A forward and a backward pass, call by call, with the origin of the first NaN.""")
    return


@app.cell
def _(half, model, tnp):
    with tnp.follow(model) as run:
        model(half.float()).sum().backward()
    run
    return


@app.cell
def _(half, mo, tnp):
    # `tnp.card` returns text and HTML for other places.
    mo.plain_text(tnp.card(half).text)
    return


if __name__ == "__main__":
    app.run()
