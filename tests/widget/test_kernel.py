"""The kernel's side of the story, without a browser: outputs, comm messages, and the toggle that moves on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernels import TIMEOUT_S, start_kernel
from safetensors.numpy import save_file

WIDGET = "application/vnd.jupyter.widget-view+json"


class Kernel:
    """A kernel, and what it has published for each display id."""

    def __init__(self) -> None:
        self.manager, self.client = start_kernel()
        self.shown: dict[str, dict[str, Any]] = {}
        self.comms: dict[str, dict[str, Any]] = {}
        self.answers: list[dict[str, Any]] = []

    def run(self, code: str, cell_id: str | None = None) -> list[dict[str, Any]]:
        """Run a cell, which the page calls by an id; return the bundles of its outputs, in order."""
        request = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": True}
        message = self.client.session.msg("execute_request", request)
        message["metadata"] = {"cellId": cell_id} if cell_id else {}
        self.client.shell_channel.send(message)
        return self._outputs_until_idle(message["header"]["msg_id"])

    def send(self, comm_id: str, data: Any) -> list[dict[str, Any]]:
        """Send to a widget what the page would send, wait until it is handled, and return what that shows."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        self.client.shell_channel.send(message)
        return self._outputs_until_idle(message["header"]["msg_id"])

    def ask(self, comm_id: str, kind: str, **content: Any) -> dict[str, Any]:
        """Ask a widget as the page does, and return the answer."""
        self.answers.clear()
        request = {"type": kind, "page": "p", "number": 1, **content}
        self.send(comm_id, {"method": "custom", "content": request})
        return self.answers[-1]

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
            elif kind == "comm_msg" and content["data"].get("method") == "custom":
                self.answers.append(content["data"]["content"])
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


@pytest.fixture(scope="module")
def plain_kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(plain_kernel: Kernel) -> Iterator[Kernel]:
    """The same kernel for all, without names, and with tensornp loaded anew."""
    plain_kernel.run("%reset -f")
    plain_kernel.comms.clear()
    plain_kernel.shown.clear()
    plain_kernel.run("%load_ext tensornp\nimport torch")
    yield plain_kernel
    plain_kernel.run("%unload_ext tensornp")


@pytest.mark.slow
def test_one_toggle_comes_unasked_and_moves_from_card_to_card(kernel):
    """The card is the only output; one comm serves all, and a cell without a card leaves the toggle where it is."""
    (card,) = kernel.run("w = torch.zeros(3)\nw")
    assert set(card) == {"text/plain", "text/html"}
    ((comm, state),) = kernel.toggles().items()
    first = state["anchor"]
    assert first in card["text/html"]
    (card,) = kernel.run("v = torch.ones(2)\nv")
    ((same, state),) = kernel.toggles().items()
    assert same == comm
    assert state["anchor"] != first and state["anchor"] in card["text/html"]
    assert state["suggestion"] == "v_np"
    opened = set(kernel.comms)
    for other in ("5", "torch.ones(1, device='meta')", "%tensors", "[w, v]"):
        kernel.run(other)
        assert kernel.comms[comm]["anchor"] == state["anchor"]
    assert len(set(kernel.comms) - opened) == 1, "the table's own, which stays too"
    assert not any(WIDGET in data for data in kernel.shown.values())


def test_a_click_changes_the_mode_in_the_kernel_and_a_name_is_bound(kernel):
    """What the page sends arrives; each mode's array does what it says."""
    kernel.run("w = torch.zeros(3)\nw")
    ((comm, state),) = kernel.toggles().items()
    assert (state["suggestion"], state["can_bind"]) == ("w_np", True)
    for mode in ("share", "copy"):
        assert kernel.ask(comm, "choose", mode=mode)["mode"] == mode
        assert (">copy " in kernel.comms[comm]["html"]) == (mode == "copy")
        kernel.ask(comm, "bind", name=f"{mode}_np")
    kernel.run("w[0] = 7")
    assert kernel.value("(bool(share_np[0] == 7), bool(copy_np[0] == 7))") == "(True, False)"
    assert kernel.ask(comm, "bind", name="w")["canOverwrite"]
    assert kernel.value("type(w).__name__") == "Tensor"
    assert "not a valid Python name" in kernel.ask(comm, "bind", name="not a name")["text"]


def test_the_values_open_in_the_same_part(kernel):
    """No other comm serves them."""
    kernel.run("w, v = torch.zeros(3), torch.ones(2)\nw")
    (toggle,) = kernel.toggles()
    assert kernel.ask(toggle, "values")["name"] == "w"
    assert kernel.ask(toggle, "move")["exact"] == ["0.0"] * 3
    assert len(kernel.toggles()) == 1


@pytest.mark.slow
def test_widget_never_and_always(kernel):
    """never shows none; always gives each living card one comm, until its cell runs again."""
    kernel.run("%config TensorDisplay.widget = 'never'")
    assert len(kernel.run("torch.ones(1)")) == 1
    assert kernel.comms == {}
    kernel.run("%config TensorDisplay.widget = 'always'\na, b = torch.ones(1), torch.ones(2)")
    assert len(kernel.run("display(a)\nb", cell_id="one")) == 2
    assert len(kernel.toggles()) == 2
    assert len(kernel.comms) == 3, "two toggles and the layout that all share"
    kernel.run("display(a)\nb", cell_id="one")
    assert len(kernel.toggles()) == 2
    kernel.run("display(a)\nb", cell_id="two")
    assert len(kernel.toggles()) == 4
    kernel.run("%config TensorDisplay.widget = 'auto'")


@pytest.mark.slow
def test_unloading_takes_the_toggle_back(kernel):
    """No comm is left open."""
    kernel.run("w = torch.ones(1)\nw")
    kernel.run("%unload_ext tensornp")
    assert kernel.comms == {}
    (data,) = kernel.run("w")
    assert data == {"text/plain": "tensor([1.])"}


@pytest.mark.slow
def test_statistics_run_while_the_kernel_runs_cells(kernel):
    """The scan is in a thread: its figures come by themselves, and cells go on."""
    kernel.run("import torch; large = torch.ones(2000, 1000); large[7, 8] = float('nan')")
    kernel.run("large")
    comm, state = next(iter(kernel.toggles().items()))
    assert state["has_more"]
    kernel.send(comm, {"method": "custom", "content": {"type": "stats", "page": "p", "number": 1}})
    end = time.monotonic() + TIMEOUT_S
    while kernel.toggles()[comm]["has_more"] and time.monotonic() < end:
        kernel.run("import time; time.sleep(0.05)")
    card = kernel.toggles()[comm]["html"]
    assert "finite: all 1" in card and "1 NaN" in card


ASK = """
from ipywidgets.widgets import widget as widgets
def the_tree():
    *_, tree = (one for one in widgets._instances.values() if type(one).__name__ == 'WeightsWidget')
    return tree
def ask(kind, **request):
    tree, answers = the_tree(), []
    tree.send = lambda content, buffers=None: answers.append(content)
    tree._receive(None, {'type': kind, 'page': 'p', 'number': 0, **request}, [])
    return answers[0]
"""


@pytest.mark.slow
def test_a_tree_keeps_no_memory(kernel):
    """A weight opens while a name reaches it; then, and where none ever did, the answer asks for a name."""
    kernel.run(ASK)
    kernel.run("import gc\nfrom torch.multiprocessing.reductions import StorageWeakRef")
    kernel.run("model = torch.nn.Linear(3, 2)\n%weights model")
    assert "model.weight" in kernel.value("ask('open', row=0)['copies']['PyTorch']")
    kernel.run("seen = StorageWeakRef(model.weight.untyped_storage())\ndel model\ngc.collect()")
    assert "assign the model to a name" in kernel.value("ask('open', row=0)['text']")
    assert kernel.value("seen.expired()") == "True"
    kernel.run("model = torch.nn.Linear(3, 2)\n%weights model.state_dict()")
    assert "assign the model to a name" in kernel.value("ask('open', row=0)['text']")


@pytest.mark.slow
def test_a_comparison_is_live_as_the_value_of_a_cell(kernel):
    """Its rows open as those of `%tensordiff` do."""
    kernel.run("import tensornp as tnp\na, b = {'w': torch.ones(3)}, {'w': torch.zeros(3)}")
    (card,) = kernel.run("tnp.compare(a, b)")
    ((table, state),) = kernel.toggles().items()
    assert state["anchor"] in card["text/html"]
    assert kernel.ask(table, "values", row=0)["label"] == "w"
    assert kernel.ask(table, "move")["faces"] == ["before", "after", "Δ"]


@pytest.mark.slow
def test_the_tree_of_a_file_needs_no_torch(tmp_path):
    """The rows are listed without its import; values that are opened bring it."""
    path = tmp_path / "model.safetensors"
    save_file({f"layers.{i}.w": np.full((2, 3), i, np.float32) for i in range(3)}, path)
    kernel = Kernel()
    try:
        kernel.run("%load_ext tensornp\nimport sys")
        kernel.run(f"%weights {path}")
        (tree,) = kernel.toggles()
        assert "layers.{0..2}.w" in kernel.ask(tree, "rows")["html"]
        assert "layers.2.w" in kernel.ask(tree, "rows", search="2")["html"]
        assert kernel.value("'torch' in sys.modules") == "False"
        assert "[2., 2., 2.]" in kernel.ask(tree, "open", row=2)["html"]
        kernel.ask(tree, "values", row=2)
        assert kernel.ask(tree, "move")["exact"] == ["2.0"] * 6
    finally:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_a_followed_pass_has_a_tree_that_goes_with_its_cell(kernel):
    """The card is the only output, of the magic and of a cell's value; where no widget is wanted, there is no other."""

    def trees() -> list[str]:
        return [state["anchor"] for state in kernel.comms.values() if state.get("label") == "net"]

    kernel.run("net = torch.nn.Linear(3, 2)\nx = torch.ones(4, 3)")
    follow = "%%follow -o run net\nnet(x);"
    for _ in range(2):
        (card,) = kernel.run(follow, cell_id="a")
        (anchor,) = trees()
        assert anchor in card["text/html"] and WIDGET not in card
    (card,) = kernel.run("import pickle\npickle.loads(pickle.dumps(run))", cell_id="b")
    assert trees()[1] in card["text/html"]
    kernel.run("%config TensorDisplay.widget = 'never'")
    (card,) = kernel.run(follow, cell_id="a")
    assert len(trees()) == 1 and "tensornp-static" in card["text/html"]
    kernel.run("%unload_ext tensornp")
    assert trees() == []
    kernel.run("%load_ext tensornp")
