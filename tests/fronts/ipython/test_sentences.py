"""Bad input gets one sentence: what it is, and the line that does what was meant; no wall of our source."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output

import tensornp as tnp


@pytest.fixture
def notebook(shell):
    """A shell with a tensor, an array and a model."""
    shell.namespace.update(w=torch.rand(3, 4), a=np.ones(3), model=torch.nn.Linear(3, 4), np=np, tnp=tnp)
    return shell


def traceback_of(shell, cell, mode="Context"):
    """Return what a failing cell prints, without colours."""
    shell.ip.InteractiveTB.set_mode(mode)
    try:
        with capture_output() as captured:
            assert not shell.ip.run_cell(cell).success
    finally:
        shell.ip.InteractiveTB.set_mode("Context")
    return re.sub(r"\x1b\[[\d;]*m", "", captured.stdout + captured.stderr)


def test_an_error_of_a_function_shows_the_line_of_the_user_and_a_sentence(notebook):
    """The lines of functions in between too, if they are the user's own; Verbose shows ours."""
    shown = traceback_of(notebook, "def mine(m):\n    return tnp.stats(m)\nmine(model)")
    assert "----> 3 mine(model)" in shown
    assert "----> 2     return tnp.stats(m)" in shown
    assert "tensornp/" not in shown.replace("\\", "/")
    assert shown.rstrip().splitlines()[-1].startswith("NotATensorError: stats takes a tensor or an array, not 'Linear'")
    assert "compute.py" in traceback_of(notebook, "tnp.stats(model)", "Verbose")
    assert (
        traceback_of(notebook, "tnp.weights(model)['nope']", "Minimal").strip().startswith("NoSuchWeightError: there")
    )
    assert len(traceback_of(notebook, "tnp.weights('/nowhere/x.pt')").splitlines()) < 10


def test_an_error_of_the_user_s_own_code_stays_in_view(notebook):
    """It may be the cause of ours; one of a library, which our sentence has told, is left out."""
    shown = traceback_of(
        notebook, "class Odd:\n    def __tensornp__(self):\n        raise RuntimeError('mine')\ntnp.to_numpy(Odd())"
    )
    assert "RuntimeError: mine" in shown
    assert "raise RuntimeError('mine')" in shown
    assert "UnsupportedTensorError: " in shown
    with pytest.raises(tnp.TensornpError) as raised:
        tnp.weights("/nowhere/x.pt")
    error = raised.value
    before = error.__cause__, error.__context__, error.__suppress_context__
    error._render_traceback_()
    assert (error.__cause__, error.__context__, error.__suppress_context__) == before


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("%tonumpy w -o w_np", "%tonumpy -o w_np w"),
        ("%tonumpy w.T --copy -o w_np", "%tonumpy --copy -o w_np w.T"),
        ("%tonumpy w -o w_np;", "%tonumpy -o w_np w;"),
        ("%tensorstats w --axis 0", "%tensorstats --axis 0 w"),
        ("%tensordiff w, w", "%tensordiff w w"),
    ],
)
def test_what_can_be_read_in_one_way_is_read_so(notebook, line, same):
    """Options behind the expression, and a comma between two."""
    shown = []
    for one in (line, same):
        notebook.namespace.pop("w_np", None)
        notebook.run(one)
        texts = [data["text/plain"] for data in notebook.displayed]
        shown.append((notebook.printed, texts, str(notebook.namespace.get("w_np"))))
    assert shown[0] == shown[1]


def test_what_could_be_a_difference_is_one(notebook):
    """With the line as it should be, where it was none."""
    notebook.namespace["c"] = torch.ones(3, 4)
    assert np.array_equal(notebook.run("%tonumpy w -c"), (notebook.namespace["w"] - 1).numpy())
    del notebook.namespace["c"]
    assert notebook.fail("%tonumpy w -c").endswith("if it is an option, that stands in front: %tonumpy -c w")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%tonumpy np.ones(3)", "it is an array already, which tnp.card shows"),
        ("%tonumpy [1, 2, 3]", "there is no tensor in this list; np.array(...) converts numbers"),
        ("%tonumpy model", "%tonumpy takes a tensor, .* %tonumpy model.state_dict\\(\\) converts all of it"),
        ("%tensorstats model", r"%tensorstats takes a tensor .* tnp.weights\(model\).scan\(\)"),
        ("%weights w", "%weights takes a module, .* not a Tensor; tnp.card and tnp.stats take one tensor"),
        ("%weights bert-base-uncased", r"huggingface_hub.snapshot_download\('bert-base-uncased'\), and %weights path"),
        ("%weights sentence-transformers/all-MiniLM-L6-v2", "snapshot_download"),
        ("%weights http://127.0.0.1:1/model.safetensors", "cannot be reached: Connection refused; check the address"),
        ("%weights nosuch://bucket/model", "has a scheme that fsspec does not know"),
    ],
)
def test_what_is_something_else_is_told_with_the_line_that_was_meant(notebook, line, said):
    """The magic that was called is named, and not the function behind it."""
    said = said if ".*" in said or "\\" in said else re.escape(said)
    assert re.search(said, notebook.fail(line))


def test_a_function_that_is_called_otherwise_is_named():
    """What is not there is not there all the same."""
    assert not hasattr(tnp, "show")
    for name, said in (
        ("show", "tensornp.card(t) shows anywhere"), ("stat", "did you mean 'stats'?"), ("_repr_html_", "has no"),
        ("qqq", "dir(tensornp) lists what there is"), ("diff", "tensornp.compare(a, b)"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=re.escape(said)):
            getattr(tnp, name)
    with pytest.raises(tnp.NotATensorError, match=re.escape("of an array a, tnp.TensorWidget(tnp.to_tensor(a))")):
        tnp.TensorWidget(np.ones(3))
