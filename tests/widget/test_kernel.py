"""The kernel's side of the story, without a browser: outputs, comm messages, and the toggle that moves on."""

from __future__ import annotations

import sys
import time
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


@pytest.fixture(scope="module")
def plain_kernel() -> Iterator[Kernel]:
    """A kernel without tensornp."""
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
    assert (state["suggestion"], state["mode"]) == ("v_np", "view")
    opened = set(kernel.comms)
    for other in ("5", "torch.ones(1, device='meta')", "%tensors", "[w, v]"):
        kernel.run(other)
        assert kernel.comms[comm]["anchor"] == state["anchor"]
    assert len(set(kernel.comms) - opened) == 1, "the table's own, which stays too"
    assert not any(WIDGET in data for data in kernel.shown.values())


@pytest.mark.slow
def test_whoever_only_asks_for_a_representation_gets_no_toggle(kernel):
    """A variable inspector formats what nobody sees; the toggle stays at the card that was shown."""
    kernel.run("w = torch.zeros(3)\nv = torch.ones(2)\nw")
    ((comm, state),) = kernel.toggles().items()
    kernel.run("_ = get_ipython().display_formatter.format(v)")
    kernel.run("%%capture\ndisplay(v)")
    assert kernel.comms[comm]["anchor"] == state["anchor"]
    kernel.run("display(v)\nget_ipython().display_formatter.format(w)\nNone")
    assert kernel.comms[comm]["suggestion"] == "v_np"


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
    assert kernel.value("(bool(share_np[0] == 7), bool(copy_np[0] == 7))") == "(True, False)"
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "w"}})
    assert kernel.comms[comm]["message"]["confirm"] == "w"
    assert kernel.value("type(w).__name__") == "Tensor"
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "not a name"}})
    assert "not a valid Python name" in kernel.comms[comm]["message"]["text"]


def test_the_last_name_of_a_tensor_can_be_bound_to_its_array(kernel):
    """The tensor goes with it; that the name is bound is said all the same, and shown is what it is bound to."""
    kernel.run("w = torch.zeros(3)\ndisplay(w)")
    (comm,) = kernel.toggles()
    kernel.run("w[0] = 5")
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "w", "overwrite": True}})
    assert kernel.comms[comm]["message"] == {"text": "bound: w (view)", "again": ""}
    assert kernel.comms[comm]["array_text"] == kernel.value("w")
    kernel.send(comm, {"method": "custom", "content": {"type": "choose", "mode": "copy"}})
    assert "show it again" in kernel.comms[comm]["message"]["text"]


def test_a_card_that_a_callback_shows_gets_the_toggle(kernel):
    """A button or a slider of ipywidgets runs no cell."""
    kernel.run("import ipywidgets\nv, w, button = torch.zeros(2), torch.ones(3), ipywidgets.Button()")
    (button,) = (comm for comm, state in kernel.comms.items() if state.get("_model_name") == "ButtonModel")
    kernel.run("button.on_click(lambda _: display(v))\nw")
    ((toggle, state),) = kernel.toggles().items()
    (card,) = kernel.send(button, {"method": "custom", "content": {"event": "click"}})
    state = kernel.comms[toggle]
    assert state["anchor"] in card["text/html"]
    assert state["suggestion"] == "v_np"
    kernel.run("ipywidgets.Widget.close_all()")


def test_the_code_of_the_navigator_travels_when_it_is_first_opened_and_once(kernel):
    """No card brings it; one comm serves all cards, and stays with its tensor when the toggle moves on."""
    kernel.run("w, v = torch.zeros(3), torch.ones(2)\nw")
    (toggle,) = kernel.toggles()
    kernel.send(toggle, {"method": "custom", "content": {"type": "values", "open": True, "id": "1"}})
    (navigator,) = kernel.comms.keys() & kernel.toggles().keys() - {toggle}
    assert kernel.comms[navigator]["anchor"] == kernel.comms[toggle]["place"] != ""
    assert kernel.comms[toggle]["shows_values"]
    comms = set(kernel.comms)
    opened = kernel.comms[navigator]["anchor"]
    kernel.run("v")
    assert kernel.comms[navigator]["anchor"] == opened != kernel.comms[toggle]["anchor"]
    assert not kernel.comms[toggle]["shows_values"]
    kernel.send(toggle, {"method": "custom", "content": {"type": "values", "open": True, "id": "2"}})
    assert kernel.comms[navigator]["anchor"] == kernel.comms[toggle]["place"]
    assert set(kernel.comms) == comms
    for nonsense in (3, None, {"type": "move"}, {"type": "move", "page": "p", "number": 1, "corner": "x"}):
        assert kernel.send(navigator, {"method": "custom", "content": nonsense}) == []
    kernel.send(navigator, {"method": "custom", "content": {"type": "close"}})
    assert (kernel.comms[navigator]["anchor"], kernel.comms[toggle]["shows_values"]) == ("", False)


def test_a_grid_that_stayed_keeps_no_tensor_and_goes_with_its_cell(kernel):
    """It holds a tensor as loosely as the card does, and leaves where the cell of its card runs again."""
    kernel.run("w = torch.zeros(3)\ndisplay(w)", "a")
    (toggle,) = kernel.toggles()
    kernel.send(toggle, {"method": "custom", "content": {"type": "values", "open": True, "id": "1"}})
    (navigator,) = kernel.comms.keys() & kernel.toggles().keys() - {toggle}
    kernel.run("torch.ones(2)", "b")
    weak = "from torch.multiprocessing.reductions import StorageWeakRef"
    kernel.run(f"{weak}\ngone = StorageWeakRef(w.untyped_storage())\ndel w", "c")
    assert kernel.value("gone.expired()") == "True"
    assert kernel.comms[navigator]["anchor"]
    kernel.run("5", "a")
    assert kernel.comms[navigator]["anchor"] == ""


def test_the_array_of_a_window_is_bound_as_its_line_does(kernel):
    """Live where the magic's is; what is taken is asked about first."""
    kernel.run("w = torch.arange(600.).reshape(20, 30)\nw")
    (toggle,) = kernel.toggles()
    kernel.send(toggle, {"method": "custom", "content": {"type": "values", "open": True, "id": "1"}})
    (navigator,) = kernel.comms.keys() & kernel.toggles().keys() - {toggle}
    bind = {"type": "bind", "page": "p", "number": 1, "corner": [3, 4], "size": [5, 6], "name": "part"}
    kernel.send(navigator, {"method": "custom", "content": bind})
    kernel.run("same = %tonumpy w[3:8, 4:10]\nw += 1")
    assert kernel.value("(bool((part == same).all()), part.shape, float(part[0, 0]), part.flags.writeable)") == (
        "(True, (5, 6), 95.0, False)"
    )
    kernel.send(navigator, {"method": "custom", "content": {**bind, "corner": [0, 0]}})
    assert kernel.value("float(part[0, 0])") == "95.0"
    kernel.send(navigator, {"method": "custom", "content": {**bind, "corner": [0, 0], "overwrite": True}})
    assert kernel.value("float(part[0, 0])") == "1.0"


def test_what_was_chosen_is_said_where_the_toggle_was(kernel):
    """The page puts it into the card that the toggle leaves."""
    kernel.run("w = torch.zeros(3)\nw")
    (comm,) = kernel.toggles()
    kernel.send(comm, {"method": "custom", "content": {"type": "choose", "mode": "copy", "id": "1"}})
    kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "mine", "id": "2"}})
    kernel.run("torch.ones(1)")
    assert kernel.comms[comm]["parting"] == "copy was chosen, bound: mine (copy)"


def test_a_request_that_comes_twice_is_done_once(kernel):
    """The page asks again where an answer is late; the name that is bound by then is not taken for somebody else's."""
    kernel.run("w = torch.zeros(3)\nw")
    (comm,) = kernel.toggles()
    for _ in range(2):
        kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": "mine", "id": "7"}})
        assert kernel.comms[comm]["message"] == {"text": "bound: mine (view)", "again": "mine = %tonumpy --view w"}


def test_what_is_shown_is_what_bind_binds(kernel):
    """bfloat16 prints its own dtype in share mode, and the values as they are when the name is bound."""
    (card,) = kernel.run("w = torch.ones(2).bfloat16()\nw")
    (comm,) = kernel.toggles()
    assert "dtype=float32" in card["text/plain"]
    kernel.run("w[0] = 3")
    for mode in ("share", "copy"):
        kernel.send(comm, {"method": "custom", "content": {"type": "choose", "mode": mode}})
        kernel.send(comm, {"method": "custom", "content": {"type": "bind", "name": f"{mode}d"}})
        assert kernel.comms[comm]["array_text"] == kernel.value(f"{mode}d").replace("\\n", "\n")


def test_widget_never_and_always(kernel):
    """never shows none; always gives each living card one comm, until its cell runs again or its tensor is gone."""
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
    kernel.run("del a")
    assert [state["suggestion"] for state in kernel.toggles().values()] == ["b_np"] * 2


def test_a_pinned_card_keeps_no_tensor_that_has_a_name(kernel):
    """Run again and again, released, or unloaded: what it was made of goes when its last name goes."""
    alive = (
        "import gc; _ = gc.collect(); n = sum(type(o) is torch.Tensor and o.shape == (77,) for o in gc.get_objects())"
    )
    kernel.run("x = torch.zeros(77)")
    for _ in range(3):
        kernel.run("%tonumpy -w x", cell_id="pin")
    assert len(kernel.toggles()) == 1
    kernel.run("del x\n" + alive)
    assert kernel.value("n") == "0"
    kernel.run("%tonumpy -w torch.zeros(77)", cell_id="other")
    kernel.run(alive)
    assert kernel.value("n") == "1", "nothing else keeps it"
    kernel.run("%tensors --release\n" + alive)
    assert kernel.value("n") == "0"
    kernel.run("%tonumpy -w torch.zeros(77)", cell_id="other")
    kernel.run("%unload_ext tensornp\n" + alive)
    assert kernel.value("n") == "0"
    assert kernel.comms == {}


NONSENSE = ({"method": "update", "state": 3}, {"method": "update", "state": [[]]}, {"method": "update"}, {"method": 5},
            {"method": "update", "state": {"mode": [1], "x": {}}, "buffer_paths": [["a"]]}, {"state": None}, [], "text",
            {"method": "custom"}, {"method": "custom", "content": {"type": "bind", "id": []}})  # fmt: skip


def test_nonsense_in_a_message_of_the_page_raises_nothing(kernel):
    """Nothing is printed under any cell, and the toggle goes on."""
    kernel.run("w = torch.zeros(3)\nw")
    (comm,) = kernel.toggles()
    for data in NONSENSE:
        assert kernel.send(comm, data) == []
    kernel.send(comm, {"method": "update", "state": {"mode": "copy"}, "buffer_paths": []})
    assert kernel.comms[comm]["mode"] == "copy"


def test_a_card_whose_tensor_is_gone_or_has_no_values_gets_no_toggle(kernel):
    """There is nothing to toggle."""
    assert len(kernel.run("display(torch.ones(1))")) == 1
    assert len(kernel.run("torch.ones(1, device='meta')")) == 1


def test_unloading_takes_the_toggle_back(kernel):
    """No comm is left open."""
    kernel.run("w = torch.ones(1)\nw")
    kernel.run("%unload_ext tensornp")
    assert kernel.comms == {}
    (data,) = kernel.run("w")
    assert data == {"text/plain": "tensor([1.])"}


def test_statistics_run_while_the_kernel_runs_cells(kernel):
    """The scan is in a thread: its figures come by themselves, and cells go on."""
    kernel.run("import torch; large = torch.ones(2000, 1000); large[7, 8] = float('nan')")
    kernel.run("large")
    comm, state = next(iter(kernel.toggles().items()))
    assert state["has_stats"]
    kernel.send(comm, {"method": "custom", "content": {"type": "stats"}})
    end = time.monotonic() + TIMEOUT_S
    while not kernel.toggles()[comm].get("figures") and time.monotonic() < end:
        kernel.run("import time; time.sleep(0.05)")
    assert kernel.toggles()[comm]["figures"]["words"][0] == "finite: all 1"
    assert kernel.toggles()[comm]["figures"]["alarms"] == [["nan", "1 NaN"]]


@pytest.mark.skipif(sys.platform == "win32", reason="the signal of Ctrl-C")
def test_ctrl_c_ends_a_loop_of_statistics_and_leaves_nothing_locked(kernel):
    """KeyboardInterrupt as everywhere; the gate is open, and no thread goes on."""
    kernel.run("import threading, time, torch, tensornp as tnp; wide = torch.ones(2**23)")
    kernel.client.execute("print('begun', flush=True)\nwhile True: tnp.stats(wide)")
    while True:
        message = kernel.client.get_iopub_msg(timeout=TIMEOUT_S)
        if message["msg_type"] == "stream":
            kernel.manager.interrupt_kernel()
        if message["msg_type"] == "error":
            assert message["content"]["ename"] == "KeyboardInterrupt"
        is_idle = message["content"].get("execution_state") == "idle"
        if is_idle and message["parent_header"]["msg_type"] == "execute_request":
            break
    assert kernel.value("tnp.stats(wide).mean") == "1.0"


def test_the_bar_of_a_scan_leaves_nothing_in_the_cell(kernel):
    """Neither when all was read, nor when it was interrupted: a widget would be saved with the notebook, and dead."""
    kernel.run("import torch, tensornp as tnp\nfrom tensornp.models.scan import progress, run as scan")
    kernel.run("scan._TOLD_EVERY_S = 0.0")
    kernel.run("w = tnp.weights({str(i): torch.ones(1000) for i in range(9)})")
    interrupt = """
add, num = scan._Told.add, [0]
def interrupted(*given):
    add(*given)
    num[0] += 1
    if num[0] == 4:
        raise KeyboardInterrupt
scan._Told.add = interrupted
"""
    try:
        for line, num_read in (("", 9), (interrupt, 4)):
            before = set(kernel.shown)
            outputs = kernel.run(f"{line}\nprogress._DELAY_S = -1.0\ntable = w.scan()")
            (own,) = set(kernel.shown) - before
            assert not any(WIDGET in output for output in outputs)
            assert any("scan: " in output["text/plain"] for output in outputs)
            assert kernel.shown[own] == {"text/plain": "", "text/html": ""}
            assert kernel.value("len(table)") == str(num_read)
    finally:
        kernel.run("progress._DELAY_S = 1.0\nscan._Told.add = add")


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


@pytest.mark.parametrize("typed", ["torch.nn.Sequential(torch.nn.Linear(3, 2))", "{'0.weight': torch.ones(2, 3)}"])
def test_weights_that_only_the_magic_was_given_live_as_long_as_their_tree(kernel, typed):
    """They are read and scanned; no code is offered, which would make others; in no doubled parentheses."""
    kernel.run(ASK)
    kernel.run("import gc")
    kernel.run(f"%weights {typed}")
    assert any(state.get("label") == f"tnp.weights({typed})" for state in kernel.comms.values())
    kernel.run("gc.collect()\nanswer = ask('open', weight=0)")
    assert kernel.value("answer['text'].startswith('array([[')") == "True"
    assert kernel.value("answer['numpy'] + answer['torch'] + ask('lines', first=0, count=9)['code']") == ""
    assert "kept by this tree alone" in kernel.value("answer['facts']")


def test_a_tree_keeps_no_memory_that_others_have_nor_any_that_a_later_run_has_not(kernel):
    """It goes with the model; what the tree alone has goes with the tree."""
    kernel.run(ASK)
    kernel.run("import gc\nfrom torch.multiprocessing.reductions import StorageWeakRef\nrefs = []")
    kernel.run(
        "def make():\n    t = torch.ones(9)\n    refs.append(StorageWeakRef(t.untyped_storage()))\n    return {'a': t}"
    )
    kernel.run("model = torch.nn.Linear(3, 2)\n%weights model.state_dict()")
    assert "model.state_dict()" in kernel.value("ask('open', weight=0)['torch']")
    kernel.run("refs.append(StorageWeakRef(model.weight.untyped_storage()))\ndel model\ngc.collect()")
    assert "is kept by nobody; bind it to a name" in kernel.value("ask('open', weight=0)['text']")
    assert kernel.value("refs.pop().expired()") == "True"
    for _ in range(2):
        kernel.run("%weights make()", cell_id="a")
    kernel.run("gc.collect()")
    assert kernel.value("[one.expired() for one in refs]") == "[True, False]"


@pytest.mark.parametrize("typed", ["get()", "torch.nn.Linear(20, 30)"])
def test_the_code_of_a_model_that_a_cell_has_made_reaches_that_very_one(kernel, typed):
    """Among the results of cells: what was typed would make another one."""
    kernel.run(ASK)
    kernel.run("import numpy as np, tensornp as tnp\ndef get(): return torch.nn.Linear(20, 30)")
    kernel.run(typed)
    number = int(kernel.value("get_ipython().execution_count")) - 1
    kernel.run("answer = ask('open', weight=0)")
    assert kernel.value("the_tree().opened") == f"tnp.weights(Out[{number}])"
    assert kernel.value("ask('lines', first=0, count=9)['code']").startswith(f"tnp.weights(Out[{number}])")
    for kind in ("numpy", "torch"):
        assert f"Out[{number}].weight" in kernel.value(f"answer[{kind!r}]")
        assert typed not in kernel.value(f"answer[{kind!r}]")
    kernel.run(f"Out[{number}].weight.data[0, 0] = 77")
    assert kernel.value("float(eval(answer['numpy'])[0, 0])") == "77.0"


def test_the_code_of_a_model_that_a_cell_returns_once_more_has_its_name(kernel):
    """A call such as model.eval() is not run again; where IPython keeps no results and no name is left, no code is."""
    kernel.run(ASK)
    kernel.run("import tensornp as tnp\nnet = torch.nn.Sequential(torch.nn.Linear(3, 2))")
    for typed, reached in (("net.eval()", "net"), ("net[0]", "net[0]")):
        kernel.run(typed)
        assert kernel.value("the_tree().opened") == f"tnp.weights({reached})"
    kernel.run("hook = get_ipython().displayhook; hook.do_full_cache = False")
    try:
        kernel.run("torch.nn.Linear(3, 2)")
        kernel.run("answer = ask('open', weight=0)")
        assert kernel.value("the_tree().opened + answer['numpy'] + answer['torch']") == ""
        assert kernel.value("answer['text'].startswith('array([[')") == "True"
    finally:
        kernel.run("hook.do_full_cache = True")


@pytest.mark.slow
def test_a_scanned_tree_hears_of_the_cell_that_trains_the_model(kernel):
    """And of no other."""
    kernel.run(ASK)
    kernel.run("model = torch.nn.Linear(3, 2)\n%weights model")
    kernel.run("import time\nask('scan')\nwhile not the_tree().scanned: time.sleep(0.01)")
    kernel.run("model(torch.ones(3)).sum().backward()")
    assert kernel.value("the_tree().earlier") == ""
    kernel.run("torch.optim.Adam(model.parameters()).step()")
    assert "as of the scan" in kernel.value("the_tree().earlier")


@pytest.mark.slow
def test_one_slider_comes_with_a_film_and_moves_on_to_the_next(kernel):
    """The picture is the only output; no other picture has one, nor any where no widget is wanted."""

    def sliders() -> dict[str, dict[str, Any]]:
        return {comm: state for comm, state in kernel.comms.items() if "frames" in state}

    kernel.run("import tensornp as tnp\ntnp.image(torch.zeros(5, 3, 8, 8))")
    assert not sliders()
    (shown,) = kernel.run("tnp.image(torch.zeros(1, 5, 3, 8, 8))")
    ((comm, state),) = sliders().items()
    assert state["anchor"] in shown["text/html"] and WIDGET not in shown
    assert [frame["label"] for frame in state["frames"]] == list("01234")
    (shown,) = kernel.run("tnp.image(torch.ones(1, 7, 3, 8, 8))")
    ((same, state),) = sliders().items()
    assert same == comm and state["anchor"] in shown["text/html"] and len(state["frames"]) == 7
    kernel.run("%config TensorDisplay.widget = 'never'\ntnp.image(torch.zeros(1, 5, 3, 8, 8))")
    assert sliders()[comm]["anchor"] == state["anchor"]
    kernel.run("%unload_ext tensornp")
    assert not sliders()
    kernel.run("%load_ext tensornp")


@pytest.mark.slow
def test_what_the_first_card_needs_is_imported_ahead():
    """In the idle kernel, after the cell that has loaded us; not while torch is not there."""
    kernel = Kernel()
    try:
        kernel.run("import sys\n%load_ext tensornp")
        time.sleep(1)
        assert kernel.value("'torch' in sys.modules or 'tensornp.render.view' in sys.modules") == "False"
        kernel.run("import torch")
        while kernel.value("'tensornp.widget.navigator' in sys.modules") == "False":
            time.sleep(0.1)
        before = set(eval(kernel.value("sorted(sys.modules)")))
        kernel.run("torch.ones(3, 4)")
        # What is left is found only where a card is made.
        assert len(set(eval(kernel.value("sorted(sys.modules)"))) - before) < 30
    finally:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)


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
