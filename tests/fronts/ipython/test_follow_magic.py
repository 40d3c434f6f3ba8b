"""`%%follow` runs a cell as it would run, and shows the pass."""

from __future__ import annotations

import pytest
import torch
from IPython.utils.capture import capture_output
from torch import nn

import tensornp as tnp


@pytest.fixture(autouse=True)
def _names(shell):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    # No unit is dead.
    nn.init.ones_(model[0].weight)
    shell.namespace.update(model=model, x=torch.ones(4, 3), nn=nn, torch=torch)


def shown_by(shell, cell):
    """Return what a cell gives, and the text of what it displays."""
    value = shell.run(cell)
    return value, "\n".join(data["text/plain"] for data in shell.displayed)


def test_the_cell_s_value_is_its_own_and_the_card_comes_besides(shell):
    """By the names of the notebook."""
    value, text = shown_by(shell, "%%follow -o run\nloss = model(x).sum()\nloss.backward()\nloss")
    assert value is shell.namespace["loss"]
    run = shell.namespace["run"]
    assert isinstance(run, tnp.FollowedPass)
    assert [call.code for call in run.calls] == ["model", "model[0]", "model[1]", "model[2]"]
    assert set(run.grads) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert text.startswith("no NaN and no infinity in 4 calls\nmodel · 4 calls forward · 4 gradients back")
    assert tnp.card(run).text == text


def test_lines_are_those_of_cells(shell):
    """By the number of the cell that has them, and of the cell itself as such."""
    source = (
        "class Net(nn.Module):\n    def forward(self, x):\n        return inner(x)\ninner, net = nn.Identity(), Net()"
    )
    shell.ip.run_cell(source, store_history=True)
    number = shell.ip.execution_count - 1
    shell.run("%%follow -o run\nnet(x)")
    outer, inner = shell.namespace["run"].calls
    assert str(outer.source) == "the cell line 2 `net(x)`"
    assert str(inner.source) == f"In[{number}] line 3 `return inner(x)`"


def test_a_semicolon_shows_nothing_and_no_grads_looks_at_none(shell):
    """The name is bound all the same."""
    assert shown_by(shell, "%%follow -o run --no-grads model;\nmodel(x).sum().backward();") == (None, "")
    assert shell.namespace["run"].grads == {}
    assert len(shell.namespace["run"]) == 4


def test_what_the_cell_raises_is_raised_with_the_card_before_it(shell):
    """And the hooks are gone."""
    with capture_output() as captured:
        result = shell.ip.run_cell("%%follow -o run\nmodel(x[:, :2])", store_history=False)
    assert "mat1 and mat2 shapes cannot be multiplied" in str(result.error_in_exec)
    assert "0 (Linear) got (4, 2) and its weight is (3, 3): it takes 3 features" in str(
        captured.outputs[0].data["text/plain"]
    )
    assert shell.namespace["run"].failed.name == "0"
    shell.run("model(x)")
    assert len(shell.namespace["run"]) == 2


def test_modules_that_are_named_are_followed_alone(shell):
    """By any expression that has no blank."""
    shell.run("other = nn.Linear(3, 3)")
    shown_by(shell, "%%follow -o run model[0]\nmodel(other(x))")
    assert [call.class_name for call in shell.namespace["run"].calls] == ["Linear"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x", "follow takes modules, not a Tensor"),
        ("mdl", "name 'mdl' is not defined"),
        ("-z", "option -z not recognized"),
        ("-o 3x", "3x"),
    ],
)
def test_bad_lines_get_a_sentence_and_the_cell_does_not_run(shell, line, says):
    """Nothing is lost."""
    assert says in shell.fail(f"%%follow {line}\nran = 1")
    assert "ran" not in shell.namespace


def test_options_complete(shell):
    """After the magic."""
    assert "model" in shell.complete("%%follow mo")
    assert "--no-grads" in shell.complete("%%follow --n")
    assert "--operators" in shell.complete("%%follow --o")
    assert "--keep" in shell.complete("%%follow --k")


def test_operators_are_followed_by_choice(shell):
    """Of the whole cell, or inside the modules that --only names, which implies it."""
    shell.run("%%follow --operators -o run\nloss = model(x).sum().log()\nloss.backward()")
    names = [one.name for one in shell.namespace["run"].operators]
    assert names[:3] == ["addmm", "relu", "addmm"]
    assert "log" in names
    shell.run("%%follow --only 2 --keep 0 -o run\nloss = model(x).sum().log()\nloss.backward()")
    run = shell.namespace["run"]
    assert {run.calls[one.call].name for one in run.operators} == {"2"}
    assert run["0"].outputs[0].tensor.shape == (4, 3)
    assert run["2"].outputs[0].tensor is None
    shell.run("%%follow --only \"2*\" --keep '0' -o run\nloss = model(x).sum().log()\nloss.backward()")
    quoted = shell.namespace["run"]
    assert [one.name for one in quoted.operators] == [one.name for one in run.operators]
    assert quoted["0"].outputs[0].tensor.shape == (4, 3)


def test_what_a_card_advises_is_taken_where_two_models_are_called(shell):
    """Also of one that the cell has made."""
    made = "body, head = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.Linear(2, 2)"
    cell = f"{made}\nbody[0].weight.data.fill_(3e38)\nout = head(body(torch.full((1, 2), 9.0)))"
    text = shown_by(shell, f"%%follow\n{cell}")[1]
    assert "%%follow --operators --only body.0 names the operator and its line" in text
    shell.run(f"%%follow --operators --only body.0 -o run\n{cell}")
    assert shell.namespace["run"].first("inf").operator == "addmm"


def test_a_loss_that_is_nan_is_told_although_no_module_gave_it(shell):
    """With what names the line."""
    text = shown_by(shell, "%%follow\nloss = (model(x).sum() - 1000).log()")[1]
    assert text.startswith("`loss` holds NaN, which was born in the code around the modules")
    text = shown_by(shell, "%%follow --operators\nloss = (model(x).sum() - 1000).log()")[1]
    assert text.startswith("the first NaN was born at `log`, the cell line 2 ")


def test_a_bound_that_is_to_be_lowered_is_no_trouble(shell):
    """The text of the cell tells what was bound to an infinity on purpose."""
    text = shown_by(shell, "%%follow\nbest = torch.tensor(float('inf'))\nout = model(x)")[1]
    assert text.startswith("no NaN and no infinity")


def test_a_cell_that_calls_no_module_says_so(shell):
    """In the card."""
    assert shown_by(shell, "%%follow\ny = x + 1")[1].startswith("no module was called here; %%follow --op")


def test_one_call_is_a_card_and_several_are_lines(shell):
    """As a cell's value, and so is where a NaN came from."""
    shell.run("%%follow -o run;\nmodel(x * float('nan'))")
    run = shell.namespace["run"]
    shown = shell.show(run["0"])
    text, html = shown["text/plain"], shown["text/html"]
    assert text.startswith("0 (Linear)\n") and "input [0] · NaN" in text and "<b>0</b> (Linear)" in html
    assert shell.show(run.find("[02]"))["text/plain"] == (
        "[<ModuleCall 0 (Linear): (4, 3) float32 → (4, 3), NaN>,\n"
        " <ModuleCall 2 (Linear): (4, 3) float32 → (4, 2), NaN>]"
    )
    shown = shell.show(run.first("nan"))
    assert shown["text/plain"].startswith(run.first("nan").sentence) and shown["text/html"].startswith("<div")


def test_two_passes_are_compared_by_name(shell):
    """In the sentence of the magic; with what is no pass, neither is."""
    shell.run("%%follow -o run;\nmodel(x)")
    shell.run("%%follow -o other;\nmodel(x * 2)")
    shell.run("%tensordiff run other")
    text = "\n".join(data["text/plain"] for data in shell.displayed)
    assert text.startswith("run and other: the first call that differs is 0 (Linear)\n")
    assert "its inputs had differed when model was called" in text or "when Sequential was called" in text
    for line in ("%tensordiff run model", "%tensordiff model run"):
        assert "is compared with another one, not with" in shell.fail(line)
