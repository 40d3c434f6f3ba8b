"""Threads that free, swap, rebind and resize memory beside every kind of look: nobody dies, and no figure is wrong."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from child import in_fork

import tensornp as tnp

pytestmark = pytest.mark.slow
SECONDS = 5.0 * float(os.environ.get("TENSORNP_ATTACK", "1"))
"""How long each attack goes on."""
NUMEL = 1 << 24
"""Of 64 MiB: what is freed below 32 the C library may keep mapped, where nobody notices a read of it."""


def run_beside(disturb: Callable[[], object], *looks: Callable[[], object]) -> None:
    """Call `disturb` in a thread of its own, and the looks in turn here, in the main one: a third would be noticed."""
    ends, failed = time.monotonic() + SECONDS, []

    def repeat(*acts: Callable[[], object]) -> None:
        try:
            while time.monotonic() < ends and not failed:
                for act in acts:
                    # What is freed at that moment is said in a sentence.
                    with contextlib.suppress(tnp.TensornpError):
                        act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=repeat, args=(disturb,))
    thread.start()
    repeat(*looks)
    thread.join()
    if failed:
        raise failed[0]


def free_and_fill(t: torch.Tensor) -> None:
    """Free the storage and allocate it again, as FSDP does between a backward and the next forward."""
    nbytes = t.untyped_storage().nbytes()
    t.untyped_storage().resize_(0)
    t.untyped_storage().resize_(nbytes)
    t.fill_(1.0)


def swap(t: torch.Tensor) -> None:
    """Have the name stand for another tensor's memory, as `torch.__future__.set_swap_module_params_on_conversion`."""
    # Refused while anybody refers to the storage otherwise.
    with contextlib.suppress(RuntimeError):
        torch.utils.swap_tensors(t, torch.ones(NUMEL))


@in_fork
def test_a_thread_that_compares_and_frees_beside_statistics():
    """Whoever runs inside one of our own functions does run: the guard of the reads is not off for it."""
    a, b = torch.ones(NUMEL), torch.ones(NUMEL)

    def disturb() -> None:
        tnp.compare(a, b)
        free_and_fill(a)

    run_beside(disturb, lambda: tnp.stats(a))


LOOKS: dict[str, Callable[[Any], object]] = {
    "card": tnp.card,
    "stats": tnp.stats,
    "locate": lambda t: tnp.locate(t, "max"),
    "compare": lambda t: tnp.compare(t, t),
    "container": lambda t: tnp.card([t, {"a": t}]),
    "weights": lambda t: tnp.weights({"w": t}).scan(),
    "aliases": lambda t: tnp.aliases(t, {"t": t}),
    "plot": tnp.plot,
}
"""None of them asks torch for anything beforehand: torch itself reads freed memory without a word."""
DISTURBANCES: dict[str, Callable[[torch.Tensor], object]] = {
    "frees": free_and_fill,
    "rebinds": lambda t: setattr(t, "data", torch.ones(NUMEL)),
    "swaps": swap,
    "sets": lambda t: t.set_(torch.ones(NUMEL).untyped_storage(), 0, (NUMEL,)),
    "looks and frees": lambda t: (tnp.stats(t), free_and_fill(t)),
}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@in_fork
def test_looks_beside_a_thread_that_moves_memory(disturbance):
    """Each look in turn, in the thread of the notebook."""
    t = torch.ones(NUMEL)
    run_beside(lambda: DISTURBANCES[disturbance](t), *(lambda look=look: look(t) for look in LOOKS.values()))
