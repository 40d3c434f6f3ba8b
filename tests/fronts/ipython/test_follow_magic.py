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
    """Return the value of a cell, and the text of all that it displays."""
    value = shell.run(cell)
    return value, "\n".join(data["text/plain"] for data in shell.displayed)


def test_the_cell_keeps_its_value_and_shows_the_card(shell):
    value, text = shown_by(shell, "%%follow -o run\nloss = model(x).sum()\nloss.backward()\nloss")
    assert value is shell.namespace["loss"]
    run = shell.namespace["run"]
    assert isinstance(run, tnp.FollowedPass)
    assert [call.code for call in run.calls] == ["model", "model[0]", "model[1]", "model[2]"]
    assert set(run.grads) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert text.startswith("no NaN and no Inf in 4 calls\noutputs are float32")
    assert tnp.card(run).text == text


def test_lines_are_those_of_cells(shell):
    source = (
        "class Net(nn.Module):\n    def forward(self, x):\n        return inner(x)\ninner, net = nn.Identity(), Net()"
    )
    shell.ip.run_cell(source, store_history=True)
    number = shell.ip.execution_count - 1
    shell.run("%%follow -o run\nnet(x)")
    outer, inner = shell.namespace["run"].calls
    assert str(outer.source) == "line 2 of the cell `net(x)`"
    assert str(inner.source) == f"In[{number}] line 3 `return inner(x)`"


def test_a_semicolon_shows_nothing_and_no_grads_reads_none(shell):
    assert shown_by(shell, "%%follow -o run --no-grads model;\nmodel(x).sum().backward();") == (None, "")
    assert not any(shell.namespace["run"].grads.values())
    assert len(shell.namespace["run"].calls) == 4


def test_the_card_appears_before_the_error_of_the_cell(shell):
    with capture_output() as captured:
        result = shell.ip.run_cell("%%follow -o run\nmodel(x[:, :2])", store_history=False)
    assert "mat1 and mat2 shapes cannot be multiplied" in str(result.error_in_exec)
    text = str(captured.outputs[0].data["text/plain"])
    assert text.startswith("0 (Linear) raised RuntimeError") and "(4, 2) float32; its weight is (3, 3)" in text
    assert shell.namespace["run"].failed.name == "0"
    shell.run("model(x)")
    assert len(shell.namespace["run"].calls) == 2


def test_ctrl_c_ends_the_block_with_its_card(shell):
    shell.run("class Stop(nn.Module):\n    def forward(self, x):\n        raise KeyboardInterrupt\nstop = Stop()")
    with capture_output() as captured:
        shell.ip.run_cell("%%follow\nstop(model(x))", store_history=False)
    assert str(captured.outputs[0].data["text/plain"]).startswith("KeyboardInterrupt in stop (Stop)")


@pytest.mark.parametrize(
    ("line", "part"),
    [("x", "Tensor"), ("mdl", "name 'mdl' is not defined"), ("-z", "option -z not recognized"), ("-o 3x", "3x")],
)
def test_bad_lines_are_refused_and_the_cell_does_not_run(shell, line, part):
    assert part in shell.fail(f"%%follow {line}\nran = 1")
    assert "ran" not in shell.namespace


def test_operators_are_followed_by_choice(shell):
    """In the whole cell, or inside the modules of `--only`."""
    shell.run("%%follow --operators -o run\nloss = model(x).sum().log()\nloss.backward()")
    names = [one.name for one in shell.namespace["run"].operators]
    assert names[:3] == ["addmm", "relu", "addmm"] and "log" in names
    for only, keep in (("2", "0"), ('"2*"', "'0'")):
        shell.run(f"%%follow --only {only} --keep {keep} -o run\nloss = model(x).sum().log()\nloss.backward()")
        run = shell.namespace["run"]
        assert {run[one.parent].name for one in run.operators} == {"2"}
        assert [one.tensor is None for one in (*run["0"].outputs.values(), *run["2"].outputs.values())] == [False, True]


def test_the_command_of_a_card_finds_the_operator(shell):
    """Also if two models are called, which the cell has made."""
    made = "body, head = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.Linear(2, 2)"
    cell = f"{made}\nbody[0].weight.data.fill_(3e38)\nout = head(body(torch.full((1, 2), 9.0)))"
    text = shown_by(shell, f"%%follow\n{cell}")[1]
    command = next(line for line in text.split("\n") if line.startswith("%%follow --operators --only"))
    shell.run(f"{command.partition(' shows')[0]} -o run\n{cell}")
    run = shell.namespace["run"]
    assert run[run.origin.call].name == "addmm"


def test_a_nan_of_the_cell_itself_is_found(shell):
    text = shown_by(shell, "%%follow\nloss = (model(x).sum() - 1000).log()")[1]
    assert text.startswith("NaN first appeared in the cell") and "\n%%follow --operators shows" in text
    text = shown_by(shell, "%%follow --operators -o run\nloss = (model(x).sum() - 1000).log()")[1]
    run = shell.namespace["run"]
    assert run[run.origin.call].name == "log" and "\n    loss = (model(x).sum() - 1000).log()\n" in text


def test_a_call_and_a_finding_are_cards_and_several_calls_are_lines(shell):
    shell.run("%%follow -o run;\nmodel(x * float('nan'))")
    run = shell.namespace["run"]
    shown = shell.show(run["0"])
    assert shown["text/plain"].startswith("0 (Linear)\n") and "input [0] · NaN" in shown["text/plain"]
    assert "<b>0 (Linear)</b>" in shown["text/html"]
    lines = shell.show(run.find("[02]"))["text/plain"].split("\n")
    assert len(lines) == 2 and all("(4, 3) float32" in line for line in lines)
    shown = shell.show(run.origin)
    assert shown["text/plain"].startswith("input [0] of ") and shown["text/html"].startswith("<div")


def test_two_passes_are_compared_by_name(shell):
    shell.run("%%follow -o run;\nmodel(x)")
    shell.run("%%follow -o other;\nmodel(x * 2)")
    shell.run("%tensordiff run other")
    text = "\n".join(data["text/plain"] for data in shell.displayed)
    assert text.startswith("run and other: the first call that differs is 0 (Linear)\n") and "its inputs differ" in text
    for line in ("%tensordiff run model", "%tensordiff model run"):
        assert shell.fail(line)
