"""Ctrl-C at random moments of every kind of look: whatever was set for it is set back, and the next look is whole.

At each bytecode of what sets something, it comes in ``tests/test_set_back.py``.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from gallery_child import shell
from IPython.utils.capture import capture_output

import tensornp as tnp
from tensornp.core.lowlevel import threads

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer that interrupts is one of Unix"),
]
NUM_INTERRUPTS = 25 * max(int(os.environ.get("TENSORNP_ATTACK", "1")), 1)
"""Of each look."""


def state() -> dict[str, Any]:
    """Return all that a look may set for a while."""
    formatter = shell().display_formatter
    return {
        "collector": gc.isenabled(),
        "float errors": np.geterr(),
        "print options": np.get_printoptions(),
        "filters": list(warnings.filters),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "modes": torch._C._len_torch_function_stack(),
        "overrides": torch._C._is_torch_function_enabled(),
        "random": torch.get_rng_state().tolist(),
        "printers": {mime: dict(one.type_printers) for mime, one in formatter.formatters.items()},
        "gate": gate_is_open(),
    }


def gate_is_open() -> bool:
    """Return whether another thread could read now."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(threads.GATE.acquire(timeout=60))
        if taken[0]:
            threads.GATE.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


def magic(line: str) -> Callable[[], None]:
    """Return a look by a magic."""
    return lambda: shell().run_line_magic(*line.split(" ", 1)) if " " in line else shell().run_line_magic(line, "")


def looks() -> dict[str, Callable[[], object]]:
    """Return what is interrupted."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))
    large, picture = torch.randn(300_000), torch.rand(3, 64, 64)
    shell().user_ns |= {"model": model, "large": large}
    display = shell().display_formatter.format
    return {
        "a display": lambda: display(large),
        "a table": lambda: display([large, {"a": picture, "model": model}]),
        "a module": lambda: display(model),
        "figures": lambda: tnp.stats(large).quantile([0.1, 0.5]),
        "a picture": lambda: tnp.image(picture, value_range=(0, 1)),
        "a comparison": lambda: tnp.compare(large, large.clone()),
        "names": lambda: tnp.aliases(large, shell().user_ns),
        "a scan": lambda: tnp.weights(model).scan(),
        "%tensors": magic("tensors"),
        "%weights": magic("weights model"),
        "%tensorstats": magic("tensorstats large"),
    }


def is_interrupted(look: Callable[[], object], after_s: float) -> bool:
    """Begin a look, and return whether Ctrl-C has ended it after a moment; it may be done before that."""
    with capture_output():
        try:
            signal.setitimer(signal.ITIMER_REAL, after_s)
            look()
        except KeyboardInterrupt:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def is_in_our_hands() -> bool:
    """Return whether the innermost frames are of tensornp or what it calls, and not of this test or of an exit."""
    frame, package = sys._getframe(1), os.path.dirname(tnp.__file__)
    while frame is not None:
        if frame.f_code.co_filename.startswith(package):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@in_fork
def test_random_interrupts_leave_nothing_set():
    """Each look is interrupted somewhere in its time, again and again; afterwards it is what it was."""

    def ring(*_: Any) -> None:
        # As Ctrl-C, but for what is the test's own.
        if is_in_our_hands():
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, ring)
    draw, num_ended = random.Random(0), 0
    for name, look in looks().items():
        with capture_output():
            look()
            begin = time.perf_counter()
            look()
        takes = time.perf_counter() - begin
        before = state()
        for _ in range(NUM_INTERRUPTS):
            num_ended += is_interrupted(look, max(draw.random() * takes, 1e-5))
            after = state()
            wrong = {fact: (before[fact], after[fact]) for fact in before if before[fact] != after[fact]}
            assert not wrong, (name, wrong)
        with capture_output():
            look()
    # Of one look, a busy machine may miss the moments.
    assert num_ended, "no look was ended"
