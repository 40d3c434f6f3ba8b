"""`%tensorwatch` in a shell; that watching changes nothing is proved with `%tensors`."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(np=np, w=torch.zeros(3, 2))


def report(shell: Any, code: str) -> list[str]:
    """Run a numbered cell and return the lines of the report under it, without the heading."""
    with capture_output() as captured:
        expected = f"In[{shell.ip.execution_count}] changed:"
        shell.ip.run_cell(code, store_history=True)
    found = [data for output in captured.outputs if "changed" in (data := output.data).get("text/plain", "")]
    if not found:
        return []
    (data,) = found
    heading, *lines = data["text/plain"].split("\n  ")
    assert heading == expected
    # Many are summed up in a line.
    summary, *told = lines if re.match(r"[\d,]+ (of|new|gone|tensors)", lines[0]) else ["", *lines]
    # A page has those for which a text has no room.
    more = re.fullmatch(r"… and (\d+) more", told[-1])
    assert data["text/html"].count("<div>") == (len(told) if more is None else len(told) - 1 + int(more[1]))
    assert ("<details>" in data["text/html"]) == bool(summary)
    shell.summary = summary
    return told


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("w[1] = 2", "w: row 1 of 3 · largest difference 2 at [1, 0] · with a write counted by torch"),
        ("w.numpy()[2, 1] = 2", "w: row 2 of 3 · largest difference 2 at [2, 1] · unseen by autograd"),
        ("a = %tonumpy -s w\na[0] = 4", "w: row 0 of 3 · largest difference 4 at [0, 0] · unseen by autograd"),
        ("w = torch.ones(2)", "w: another object now, (2,) float32"),
        ("w = w.numpy()", "w: another object now, (3, 2) float32"),
        ("w.requires_grad_()", "w: requires_grad: False to True"),
        ("del w", "w: it is gone, and is no longer watched"),
        ("w = 3", "w: gone"),
        ("w[0] = 1\n1 / 0", "w: row 0 of 3 · largest difference 1 at [0, 0] · with a write counted by torch"),
    ],
)
def test_each_cell_that_changes_something_reports_it_once(shell, code, line):
    """Also a cell that ends in an error; a cell that changes nothing says nothing."""
    shell.run("%tensorwatch w")
    assert report(shell, "w + 1") == []
    assert report(shell, code) == [line]
    assert report(shell, "5") == []


def test_modules_optimizers_and_containers_are_watched_as_a_whole(shell):
    """By the names that reach each tensor; what is new or gone is told."""
    shell.run("model = torch.nn.Linear(2, 1); opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)")
    shell.run("d = {'a b': torch.zeros(2), 'n': np.zeros(2)}")
    shell.run("%tensorwatch model d['a b'] opt")
    shell.run("%tensorwatch d")
    assert report(shell, "model(torch.ones(2)).sum().backward()") == [
        "model.weight: got a .grad",
        "model.bias: got a .grad",
    ]
    # What has changed most comes first.
    assert sorted(line.split(": ")[0] for line in report(shell, "opt.step()")) == [
        "model.bias",
        "model.weight",
        ", ".join(f"opt.state[opt.param_groups[0]['params'][{i}]]['momentum_buffer']" for i in (0, 1)),
    ]
    # It is watched by itself and as a part, and told once.
    assert report(shell, "d['a b'][1] = 3") == [
        "d['a b']: element 1 of 2 · largest difference 3 at [1] · with a write counted by torch"
    ]
    shell.run("%tensorwatch --off d['a b'] model opt")
    assert report(shell, "d['n'][0] = 1; d['new'] = torch.ones(1)") == [
        "d['n']: element 0 of 2 · largest difference 1 at [0]",
        "d['new']: new",
    ]
    assert report(shell, "del d['new']") == ["d['new']: gone"]


def test_a_gradient_is_watched_by_its_name(shell):
    """Also while it is not there."""
    shell.run("p = torch.ones(2, requires_grad=True); p.sum().backward()\n%tensorwatch p.grad")
    assert report(shell, "p.grad[0] = 5") == [
        "p.grad: element 0 of 2 · largest difference 4 at [0] · with a write counted by torch"
    ]
    assert report(shell, "p.grad = None") == ["p.grad: gone"]
    assert report(shell, "p.sum().backward()") == ["p.grad: new"]


def test_listing_and_ending(shell):
    shell.run("%tensorwatch")
    assert "nothing is watched" in shell.printed
    shell.run("v = torch.zeros(1)\n%tensorwatch w v")
    assert "watching w, v (2 tensors or arrays) after each cell" in shell.printed
    shell.run("%tensorwatch w")
    shell.run("%tensorwatch")
    assert "watched after each cell: w, v" in shell.printed
    shell.run("%tensorwatch --off w")
    assert report(shell, "w[0] = 1; v[0] = 1") == [
        "v: element 0 of 1 · largest difference 1 at [0] · with a write counted by torch"
    ]
    shell.run("%tensorwatch --off")
    assert "no longer watched: v" in shell.printed
    assert report(shell, "v[0] = 2") == []
    shell.run("%tensorwatch --off")
    assert "nothing is watched" in shell.printed


def test_unloading_ends_the_watch(shell):
    shell.run("%tensorwatch w")
    shell.ip.run_line_magic("unload_ext", "tensornp")
    assert report(shell, "w[0] = 1") == []
    shell.ip.run_line_magic("load_ext", "tensornp")
    assert report(shell, "w[0] = 2") == []


def test_nothing_is_kept_alive(shell):
    """A watched tensor that is deleted is gone at once."""
    reference = weakref.ref(shell.namespace["w"])
    shell.run("%tensorwatch w")
    assert report(shell, "w[0] = 1")
    del shell.namespace["w"]
    gc.collect()
    assert reference() is None


def test_a_line_of_the_report_is_escaped(shell):
    """Keys are the user's text."""
    shell.run("d = {'<b>x</b>': torch.zeros(1)}\n%tensorwatch d")
    with capture_output() as captured:
        shell.ip.run_cell("d['<b>x</b>'][0] = 1")
    html = captured.outputs[-1].data["text/html"]
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<b>x" not in html


def test_what_has_changed_alike_is_one_line(shell):
    """A training step touches every tensor of a model: one line sums it up, and each difference is under it."""
    shell.run("model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4)))\n%tensorwatch model")
    lines = report(shell, "model(torch.ones(1, 2)).sum().backward()")
    assert lines == ["model[0].weight, model[0].bias, model[1].weight and 5 more: got a .grad"]
    assert shell.summary == "", "one line needs no fold"
    lines = report(shell, "with torch.no_grad():\n    for p in model.parameters(): p.sub_(p.grad + 1)")
    assert shell.summary.startswith("8 of 8 tensors and arrays · largest difference ")
    assert len(lines) == 8
    # Of random numbers, rounding would tell which difference is the largest.
    report(shell, "model[0].bias.data.zero_()")
    assert report(shell, "model[0].bias.data.add_(1)") == [
        "model[0].bias: all 2 elements · largest difference 1 at [0] · unseen by autograd"
    ]
    assert shell.summary == ""
