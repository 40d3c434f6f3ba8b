"""The kernel's side of the story, without a browser: outputs, comm messages, and the toggle that moves on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kernels import TIMEOUT_S, start_kernel

WIDGET = "application/vnd.jupyter.widget-view+json"


class Kernel:
    """A kernel, and what it has published for each display id."""

    def __init__(self) -> None:
        self.manager, self.client = start_kernel()
        self.shown: dict[str, dict[str, Any]] = {}
        self.comms: dict[str, dict[str, Any]] = {}

    def run(self, code: str) -> list[dict[str, Any]]:
        """Run a cell; return the bundles of its outputs, in order."""
        return self._outputs_until_idle(self.client.execute(code))

    def send(self, comm_id: str, data: dict[str, Any]) -> None:
        """Send to a widget what the page would send, and wait until it is handled."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        self.client.shell_channel.send(message)
        self._outputs_until_idle(message["header"]["msg_id"])

    def value(self, expression: str) -> str:
        """Return the text of an expression's repr, evaluated in the kernel."""
        reply = self.client.execute_interactive(
            "", user_expressions={"v": f"repr({expression})"}, timeout=TIMEOUT_S, output_hook=lambda _: None
        )
        return reply["content"]["user_expressions"]["v"]["data"]["text/plain"].strip("\"'")

    def _outputs_until_idle(self, message_id: str) -> list[dict[str, Any]]:
        outputs = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            kind, content = message["msg_type"], message["content"]
            if kind == "comm_open":
                self.comms[content["comm_id"]] = dict(content["data"]["state"])
            elif kind == "comm_msg" and content["data"].get("method") in ("update", "echo_update"):
                self.comms.setdefault(content["comm_id"], {}).update(content["data"]["state"])
            elif kind == "comm_close":
                self.comms.pop(content["comm_id"], None)
            elif kind == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif kind in ("display_data", "execute_result", "update_display_data"):
                display_id = content.get("transient", {}).get("display_id")
                if display_id:
                    self.shown[display_id] = content["data"]
                if kind != "update_display_data":
                    outputs.append(content["data"])
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return outputs

    def toggles(self) -> dict[str, dict[str, Any]]:
        """Return the state of each live toggle by comm id."""
        return {comm: state for comm, state in self.comms.items() if "anchor" in state}


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    kernel.run("%load_ext tensornp\nimport torch")
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


def test_the_toggle_comes_unasked_and_moves_on(kernel):
    """Card first, toggle second; the next card takes the toggle along, and what stays holds no widget."""
    card, toggle = kernel.run("w = torch.zeros(3)\nw")
    assert set(card) == {"text/plain", "text/html"}
    assert WIDGET in toggle
    (comm,) = kernel.toggles()
    kernel.run("v = torch.ones(2)\nv")
    assert comm not in kernel.toggles()
    assert len(kernel.toggles()) == 1
    assert sum(WIDGET in data for data in kernel.shown.values()) == 1
    kernel.run("5")
    assert len(kernel.toggles()) == 1


def test_a_click_changes_the_mode_in_the_kernel_and_a_name_is_bound(kernel):
    """What the page sends arrives; each mode's array does what it says."""
    kernel.run("w = torch.zeros(3)\nw")
    ((comm, state),) = kernel.toggles().items()
    assert (state["mode"], state["suggestion"], state["can_bind"]) == ("view", "w_np", True)
    for mode in ("share", "copy"):
        kernel.send(comm, {"method": "update", "state": {"mode": mode}, "buffer_paths": []})
        state = kernel.comms[comm]
        assert state["mode"] == mode
        assert state["cards"][mode]["receipt"]["mode"] == mode
        kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": f"{mode}_np"}})
    kernel.run("w[0] = 7")
    assert kernel.value("(share_np[0] == 7, copy_np[0] == 7)") == "(np.True_, np.False_)"
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "w"}})
    assert kernel.comms[comm]["message"]["confirm"] == "w"
    assert kernel.value("type(w).__name__") == "Tensor"
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "not a name"}})
    assert "not a valid Python name" in kernel.comms[comm]["message"]["text"]


def test_once_docked_the_output_of_the_toggle_is_emptied(kernel):
    """So a saved notebook holds no widget; a mode that differs from the card's is stated when the toggle leaves."""
    kernel.run("w = torch.zeros(3)\nw")
    (comm,) = kernel.toggles()
    kernel.send(comm, {"method": "custom", "content": {"type": "docks"}})
    assert not any(WIDGET in data for data in kernel.shown.values())
    kernel.send(comm, {"method": "update", "state": {"mode": "copy"}, "buffer_paths": []})
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "mine"}})
    kernel.run("torch.ones(1)")
    assert "copy was chosen, mine is its copy" in [data["text/plain"] for data in kernel.shown.values()]


def test_widget_never_and_always(kernel):
    """never shows none; always leaves each where it is."""
    kernel.run("%config TensorDisplay.widget = 'never'")
    assert len(kernel.run("torch.ones(1)")) == 1
    kernel.run("%config TensorDisplay.widget = 'always'\na, b = torch.ones(1), torch.ones(2)")
    assert len(kernel.run("display(a)\nb")) == 4
    assert len(kernel.toggles()) == 2


def test_a_card_whose_tensor_is_gone_or_has_no_values_gets_no_toggle(kernel):
    """There is nothing to toggle."""
    assert len(kernel.run("display(torch.ones(1))")) == 1
    assert len(kernel.run("torch.ones(1, device='meta')")) == 1


def test_unloading_takes_the_toggle_back(kernel):
    """No comm is left open."""
    kernel.run("w = torch.ones(1)\nw")
    kernel.run("%unload_ext tensornp")
    assert kernel.toggles() == {}
    (data,) = kernel.run("w")
    assert data == {"text/plain": "tensor([1.])"}
