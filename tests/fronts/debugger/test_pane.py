"""A program that has stopped in debugpy, as VS Code debugs it: what its pane and its console say."""

from __future__ import annotations

import importlib
import os

import pytest
import torch
from accelerator import needs_card, register
from child import in_fork
from dap import stopped

from tensornp.fronts.debugger.pane import children_of, line_of, text_of

pytestmark = pytest.mark.slow
PROGRAM = """
import threading
import torch

class Odd(torch.Tensor):
    @property
    def shape(self):
        raise RuntimeError("asked for its shape")

    device = dtype = requires_grad = grad = shape

weight = torch.zeros(64, 512)
weight[0, 0] = float("nan")
row = weight[3]
p = torch.nn.Parameter(torch.ones(2, 3))
(p * 2).sum().backward()
made = p.sum()
odd = torch.ones(2, 3).as_subclass(Odd)
large = torch.zeros(2**20 + 1)
shell = torch.ones(3, device="meta")
freed = torch.ones(10)
freed.untyped_storage().resize_(0)

# A thread of the user's is stopped with the rest.
go_on, runs = threading.Event(), threading.Event()
def wait():
    runs.set()
    while not go_on.wait(0.001):
        pass
other = threading.Thread(target=wait)
other.start()
runs.wait()
breakpoint()
go_on.set()
other.join()
assert p.grad.tolist() == [[2, 2, 2]] * 2 and p._version == 0
"""


@pytest.fixture(scope="module")
def debugger(tmp_path_factory):
    with stopped(PROGRAM, tmp_path_factory.mktemp("pane")) as debugger:
        yield debugger


@pytest.fixture(scope="module")
def shown(debugger):
    return debugger.scope()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("weight", "(64, 512) float32 cpu"),
        ("row", "(512,) float32 cpu"),
        ("p", "(2, 3) float32 cpu · requires grad · has .grad"),
        ("made", "() float32 cpu · from SumBackward0 · 6.0"),
        ("shell", "(3,) float32 meta"),
        ("odd", "(2, 3) float32 cpu"),
        ("freed", "(10,) float32 cpu · freed"),
    ],
)
def test_a_tensor_is_told_in_a_line(shown, name, line):
    assert shown[name]["value"] == line


def test_children_tell_what_a_tensor_is_and_what_evaluates_that(debugger, shown):
    children = debugger.children(shown["row"])
    said = {name: one["value"] for name, one in children.items()}
    assert said["memory"] == "2 KiB in a storage of 128 KiB, from element 1,536 · strides (1,)"
    assert said == {
        "shape": "(512,)",
        "dtype": "float32",
        "device": "cpu",
        "grad": "none: it requires no grad",
        "memory": said["memory"],
        "first values": "0., 0., 0., 0., 0., 0., …",
        "statistics": "expand to read 512 elements",
    }
    assert [one.get("evaluateName") for one in children.values()][:3] == ["row.shape", "row.dtype", "row.device"]


def test_the_gradient_is_a_tensor_of_its_own(debugger, shown):
    """Although another thread of the user's lives: it is stopped."""
    grad = debugger.children(shown["p"])["grad"]
    assert (grad["value"], grad["evaluateName"]) == ("(2, 3) float32 cpu", "p.grad")
    assert debugger.children(grad)["first values"]["value"] == "2., 2., 2., …"


def test_statistics_are_read_when_they_are_expanded(debugger, shown):
    figures = debugger.children(debugger.children(shown["weight"])["statistics"])
    said = {name: one["value"] for name, one in figures.items()}
    assert (said["count"], said["nan"], said["zeros"], said["max"]) == ("32768", "1", "32767", "0.0")
    assert said["of"] == "all elements"


def test_statistics_of_many_bytes_are_not_offered(debugger, shown):
    statistics = debugger.children(shown["large"])["statistics"]
    assert "more than 4 MiB" in statistics["value"]
    assert not statistics["variablesReference"]


@pytest.mark.parametrize("context", ["watch", "hover"])
def test_a_watched_expression_is_told_in_a_line(debugger, context):
    assert debugger.evaluate("weight[1:]", context) == "(63, 512) float32 cpu"
    assert debugger.evaluate("freed", context) == "(10,) float32 cpu · freed"


@pytest.mark.parametrize("context", ["repl", "clipboard"])
def test_a_console_and_a_copy_have_the_card(debugger, context):
    said = debugger.evaluate("row", context)
    assert said.startswith("(512,) | float32 | cpu")
    assert "array([0., 0., 0.," in said
    assert "was freed or shrunk" in debugger.evaluate("freed", context)


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
    small = torch.ones(1, device="card")
    ledger.clear()
    assert line_of(tensor) == "(4, 3) float32 card:0 · requires grad"
    assert line_of(small) == "(1,) float32 card:0"
    assert text_of(tensor).startswith(f"{line_of(tensor)}\nnot read: they are on card:0")
    said = {name: str(value) for name, value, _ in children_of(tensor)}
    assert said["first values"] == said["statistics"]
    assert said["first values"].startswith("not read: they are on card:0")
    assert (ledger.ops, ledger.allocated, ledger.to_host) == ([], 0, 0)
