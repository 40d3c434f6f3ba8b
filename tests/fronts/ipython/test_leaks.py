"""A long session: after many thousands of displays nothing has piled up."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
from child import in_child
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from kernels import TIMEOUT_S, start_kernel

DISPLAYS_A_CELL = 100


def rss() -> int:
    """Return the bytes of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Session:
    """A shell that shows new tensors of many kinds, cell by cell."""

    def __init__(self) -> None:
        self.ip = InteractiveShell.instance(colors="nocolor")
        self.ip.display_formatter.active_types = self.ip.display_formatter.format_types
        self.ip.run_line_magic("load_ext", "tensornp")
        self.shown: list[weakref.ref[torch.Tensor]] = []
        self.ip.user_ns["make"] = self.make

    def make(self, i: int) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return a tensor that was never shown before, or a dict of one."""
        t = torch.full((i % 7 + 1, 3 + 500 * (i % 5 == 0)), float(i))
        kinds = [t, t.bfloat16(), t.requires_grad_() * 2, torch.complex(t, t).conj(), t.to_sparse(), t.to("meta")]
        chosen = kinds[i % len(kinds)]
        self.shown.append(weakref.ref(chosen))
        return {"t": chosen} if i % 11 == 0 else chosen

    def show(self, count: int) -> tuple[int, int, int]:
        """Show `count` of them; return bytes in memory, objects and threads after it."""
        for first in range(0, count, DISPLAYS_A_CELL):
            cell = f"for i in range({first}, {first + DISPLAYS_A_CELL}):\n    display(make(i))"
            with capture_output() as captured:
                self.ip.run_cell(cell, store_history=False).raise_error()
            assert len(captured.outputs) == DISPLAYS_A_CELL
        del captured
        for generation in range(3):
            gc.collect(generation)
        return rss(), len(gc.get_objects()), threading.active_count()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@in_child
def test_five_hundred_displays_leave_nothing_behind():
    """No memory, no object, no thread, no figure; every tensor that was shown can go."""
    session = Session()
    before = session.show(1000)
    session.shown.clear()
    after = session.show(500)
    alive = [reference for reference in session.shown if reference() is not None]
    assert len(session.shown) == 500
    assert alive == []
    session.shown.clear()
    del alive
    gc.collect()
    # 8 kB a display: an allocator that several threads ask keeps some MiB, and a leaked card is far more.
    assert rss() - before[0] < 4 << 20, f"{(rss() - before[0]) / 2**20:.1f} MiB"
    grown = len(gc.get_objects()) - before[1]
    assert grown < 100, grown
    assert after[2] == before[2]
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.slow
def test_in_a_kernel_only_the_last_toggle_stays_open():
    """After many cells with a card each there are as many comms and widgets as after the first."""
    manager, client = start_kernel()
    counts = """
from comm import get_comm_manager
from ipywidgets.widgets.widget import _instances
def counts():
    toggles = [w for w in _instances.values() if type(w).__name__ == "TensorWidget"]
    return len(get_comm_manager().comms), len(_instances), len(toggles)
"""

    def run(code: str) -> str:
        reply = client.execute_interactive(
            code, user_expressions={"counts": "counts()"}, timeout=TIMEOUT_S, output_hook=lambda _: None
        )["content"]
        assert reply["status"] == "ok", reply
        return reply["user_expressions"]["counts"].get("data", {}).get("text/plain", "")

    try:
        run("%load_ext tensornp\nimport torch" + counts)
        first = run("w = torch.ones(3)\nw")
        assert first.endswith(", 1)")
        for i in range(30):
            run(f"w = torch.ones({i + 1})\ndisplay(torch.zeros(2))\nw")
        assert run("w") == first
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_after_a_card_torch_still_swaps_and_converts(shell):
    """torch refuses to swap a tensor that has a weak reference; a model must move as if nobody had looked."""
    shell.run("m = torch.nn.Linear(2, 2); u = torch.zeros(2)")
    shell.run("m.weight")
    shell.run("%tonumpy u")
    shell.run("torch.__future__.set_swap_module_params_on_conversion(True)")
    try:
        shell.run("m.double()\nm.load_state_dict({name: value + 1 for name, value in m.state_dict().items()})")
        shell.run("torch.utils.swap_tensors(u, torch.ones(3))")
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert shell.namespace["m"].weight.dtype == torch.float64
    assert shell.namespace["u"].tolist() == [1, 1, 1]
