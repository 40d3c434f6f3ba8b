"""The pane of a debugger: the line of a tensor, its children, and its card in a console."""

from __future__ import annotations

import importlib
import os

import pytest
import torch
from accelerator import needs_card, register
from child import in_fork
from unchanged import unchanged

from tensornp.fronts.debugger import children_of, line_of


class Odd(torch.Tensor):
    @property
    def shape(self):
        raise RuntimeError("asked for its shape")

    device = dtype = requires_grad = grad = shape


def freed() -> torch.Tensor:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(0)
    return tensor


def with_grad() -> torch.Tensor:
    weight = torch.nn.Parameter(torch.ones(2, 3))
    (weight * 2).sum().backward()
    return weight


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: torch.zeros(64, 512), "(64, 512) float32 cpu"),
        (with_grad, "(2, 3) float32 cpu · requires grad · has .grad"),
        (lambda: with_grad().sum(), "() float32 cpu · from SumBackward0"),
        (lambda: torch.ones(3, device="meta"), "(3,) float32 meta"),
        (lambda: torch.ones(2, 3).as_subclass(Odd), "(2, 3) float32 cpu"),
        (freed, "(10,) float32 cpu · freed"),
    ],
)
def test_a_tensor_is_a_line(make, line):
    tensor = make()
    with unchanged(tensor):
        assert line_of(tensor) == line


def test_children_have_the_facts_and_their_expressions():
    row = torch.zeros(64, 512)[3]
    children = {name: (str(value), expression) for name, value, expression in children_of(row)}
    assert children == {
        "shape": ("(512,)", ".shape"),
        "dtype": ("float32", ".dtype"),
        "device": ("cpu", ".device"),
        "grad": ("none", None),
        "memory": ("2 KiB in a storage of 128 KiB, from element 1,536 · strides (1,)", None),
        "first values": ("0., 0., 0., 0., 0., 0., …", None),
        "statistics": ("all 0", None),
    }
    (grad,) = (value for name, value, _ in children_of(with_grad()) if name == "grad")
    assert torch.equal(grad, torch.full((2, 3), 2.0))


def test_statistics_are_those_of_the_card():
    weight = torch.zeros(64, 512)
    weight[0, 0] = torch.nan
    *_, (_, statistics, _) = children_of(weight)
    assert statistics == "1 NaN · finite: all 0"
    *_, (_, large, _) = children_of(torch.zeros(2**20 + 1))
    assert "more than 4 MiB" in large


@pytest.mark.parametrize("value", ["0", ""])
@in_fork
def test_a_variable_of_the_environment_turns_it_off(value):
    """Debugpy takes from a plugin the names that it exports."""
    os.environ["TENSORNP_DEBUGGER"] = value
    importlib.import_module("debugpy._vendored.force_pydevd")
    plugin = importlib.import_module("pydevd_plugins.extensions.pydevd_plugin_tensornp")
    assert bool(plugin.__all__) == (value != "0")


@needs_card
@in_fork
def test_nothing_is_asked_of_a_device():
    """It may be waiting for what the debugger has stopped."""
    ledger = register()
    tensor = torch.ones(4, 3, device="card").requires_grad_()
    ledger.clear()
    assert line_of(tensor) == "(4, 3) float32 card:0 · requires grad"
    said = {name: str(value) for name, value, _ in children_of(tensor)}
    assert said["first values"] == said["statistics"]
    assert said["statistics"].startswith("not read: they are on card:0")
    assert (ledger.ops, ledger.allocated, ledger.to_host) == ([], 0, 0)
