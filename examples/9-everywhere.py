"""tensornp outside of Jupyter: `pip install marimo`, then `marimo run examples/9-everywhere.py`, or `marimo edit`."""

import marimo

app = marimo.App(app_title="tensornp everywhere")


@app.cell
def _():
    import marimo as mo
    import torch

    import tensornp as tnp

    # What %load_ext tensornp is in Jupyter; in plain Python, the prompt then prints cards.
    tnp.register()
    return mo, tnp, torch


@app.cell
def _(mo):
    mo.md("""
    # Tensors, wherever you are

    Each cell below ends in an object, and marimo shows it as Jupyter does: no magic is needed.
    """)
    return


@app.cell
def _(mo):
    scale = mo.ui.slider(1, 6, value=1, label="times 10 to the power of")
    scale
    return (scale,)


@app.cell
def _(scale, torch):
    # From 5 on, half precision has no room for some of them.
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
    mo.md("""A live card: choose how the array shares the memory, and walk through its **Values**.""")
    return


@app.cell
def _(half, tnp):
    tnp.view(half)
    return


@app.cell
def _(mo):
    mo.md("""
    All weights of a model, of which none is read before you press **Scan**; one that you click shows its values.
    """)
    return


@app.cell
def _(tnp, torch):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    tnp.weights(model)
    return (model,)


@app.cell
def _(mo):
    mo.md("""What a forward and a backward pass did, call by call, and where the first NaN was born.""")
    return


@app.cell
def _(half, model, tnp):
    with tnp.follow(model) as run:
        model(half.float()).sum().backward()
    run
    return


@app.cell
def _(half, mo, tnp):
    # Anywhere else, a card is an object with text and HTML.
    mo.plain_text(tnp.card(half).text)
    return


if __name__ == "__main__":
    app.run()
