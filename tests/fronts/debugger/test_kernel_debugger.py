"""ipykernel's debugger, as JupyterLab asks it: its pane of variables, at rest and at a breakpoint in a cell."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kernels import TIMEOUT_S, start_kernel

SETUP = """\
%load_ext tensornp
import torch
weight = torch.ones(2, 3, requires_grad=True)
(weight * 2).sum().backward()
freed = torch.ones(10)
freed.untyped_storage().resize_(0)"""


@pytest.fixture(scope="module")
def kernel():
    """A kernel with a debugger attached; `debug` asks it, `cell` runs a cell to its end."""
    manager, client = start_kernel()
    numbers = itertools.count(1)

    def debug(command: str, **arguments: Any) -> Any:
        content = {"type": "request", "seq": next(numbers), "command": command, "arguments": arguments}
        message = client.session.msg("debug_request", content)
        client.control_channel.send(message)
        while True:
            reply = client.control_channel.get_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                assert reply["content"].get("success"), reply["content"]
                return reply["content"].get("body", {})

    def cell(code: str) -> str:
        return client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=lambda _: None)["content"]["status"]

    try:
        assert cell(SETUP) == "ok"
        debug("initialize", clientID="test", adapterID="", pathFormat="path", linesStartAt1=True)
        debug("attach")
        yield SimpleNamespace(debug=debug, cell=cell, client=client)
        debug("disconnect", restart=False, terminateDebuggee=False)
        assert cell("assert weight.grad.sum() == 12") == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def variables(body: Any) -> dict[str, Any]:
    return {one["name"]: one for one in body["variables"]}


def settled(kernel) -> dict[str, Any]:
    """Return the pane once the kernel is at rest after its last cell: before, no gradient is looked at."""
    end = time.monotonic() + TIMEOUT_S
    shown: dict[str, Any] = {}
    while "has .grad" not in str(shown) and time.monotonic() < end:
        shown = variables(kernel.debug("inspectVariables"))
        assert shown["weight"]["value"].startswith("(2, 3) float32 cpu · requires grad")
    return shown


@pytest.mark.slow
def test_the_pane_tells_tensors_and_survives_freed_ones(kernel):
    shown = settled(kernel)
    assert shown["weight"]["value"] == "(2, 3) float32 cpu · requires grad · has .grad"
    assert shown["freed"]["value"] == "(10,) float32 cpu · freed"
    children = variables(kernel.debug("variables", variablesReference=shown["weight"]["variablesReference"]))
    assert children["grad"]["value"] == "(2, 3) float32 cpu"
    assert children["first values"]["value"] == "1., 1., 1., …"
    children = variables(kernel.debug("variables", variablesReference=shown["freed"]["variablesReference"]))
    assert "was freed or shrunk" in children["first values"]["value"]


def test_a_variable_of_the_pane_that_is_opened_has_its_card(kernel):
    data = kernel.debug("richInspectVariables", variableName="freed")["data"]
    assert "was freed or shrunk" in data["text/plain"]
    assert "<div" in data["text/html"]
