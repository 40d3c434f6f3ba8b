"""What looking leaves behind: nothing, for other threads, and where Ctrl-C ends it."""

from __future__ import annotations

import importlib
import signal
import threading
import warnings

import numpy as np
import pytest
import torch
from child import in_fork
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import tensornp as tnp
from tensornp.core.lowlevel.modes import undisturbed
from tensornp.core.lowlevel.private_names import find
from tensornp.core.memory.former import Former
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import find_surroundings

_are_functions_off = find("_C._is_torch_function_all_disabled")
HITS = 1000
"""Moments at which it is interrupted, two microseconds from one to the next."""


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _card(tensor, namespace):
    """Make a card with all that is around the tensor."""

    def look(tensor, info):
        return find_surroundings(tensor, info, namespace, 1.0, former=Former(), shown_as="")

    return summarize(tensor, DisplayOptions(), look)


def _odd():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.arange(12.0).view(3, 4).to_sparse_csr(), torch.arange(6).to(torch.complex32)


@pytest.mark.slow
@in_fork
def test_warnings_of_other_threads_are_heard_while_one_looks():
    """The filters are those of the whole process, and looking leaves them alone: each warning arrives."""
    torch.set_warn_always(True)
    odd = _odd()
    heard = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_, **__: heard.append(str(message))
    filters = list(warnings.filters)
    is_done = threading.Event()

    def work():
        for i in range(3000):
            warnings.warn(f"work {i}", UserWarning, stacklevel=1)
        is_done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not is_done.is_set():
        for tensor in odd:
            assert _card(tensor, {"t": tensor}).preview is not None
            tnp.to_numpy(tensor)
        assert warnings.filters == filters
    thread.join()
    assert heard == [f"work {i}" for i in range(3000)]


def _state():
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "functions off": _are_functions_off is not None and _are_functions_off(),
        "dispatch modes": len(_get_current_dispatch_mode_stack()),
        "denormals flushed": not np.float32(1e-45) * np.float32(1),
        "tracer": torch._C._get_tracing_state() is not None,
        "filters": list(warnings.filters),
        "numpy print options": np.get_printoptions(),
        "numpy errors": np.geterr(),
    }


@pytest.mark.slow
@in_fork
def test_ctrl_c_in_the_middle_of_a_look_leaves_nothing_behind():
    """A signal at each moment of a card and of a conversion: all that was set is set back."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    tensors = [torch.arange(5000.0, requires_grad=True) * 2, torch.arange(4.0).bfloat16(), *_odd()]
    # A module that was interrupted while it was imported for the first time is broken for good.
    importlib.import_module("ml_dtypes")
    _interrupt(tensors)
    with torch.inference_mode():
        _interrupt(tensors)
    with _Mode():
        _interrupt(tensors)
    torch.set_flush_denormal(True)
    _interrupt(tensors)


def _interrupt(tensors):
    before, num_hits = _state(), 0
    for i in range(HITS):
        tensor = tensors[i % len(tensors)]
        try:
            signal.setitimer(signal.ITIMER_REAL, 2e-6 * (1 + i))
            _card(tensor, {"t": tensor, "rest": tensors})
            tnp.to_numpy(tensor, dtype="float16" if i % 2 else None)
            for _ in range(20):
                with undisturbed():
                    assert not torch.is_grad_enabled()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            num_hits += 1
        after = _state()
        assert after == before, (i, [(name, before[name], after[name]) for name in before])
    assert num_hits


def test_denormals_of_a_sparse_tensor_survive_flushing():
    """`exact` means what it says."""
    t = torch.tensor([[0.0, 1e-40]]).to_sparse()
    torch.set_flush_denormal(True)
    try:
        bits = tnp.to_numpy(t).view(np.int32).tolist()
        assert np.float32(1e-45) * np.float32(1) == 0, "the setting is as it was"
    finally:
        torch.set_flush_denormal(False)
    assert bits == [[0, int(np.float32(1e-40).view(np.int32))]]


def test_threads_that_look_together_leave_the_warning_filters_alone():
    """Filters are global; each thread restoring its own would leave another's behind."""
    sparse, before = torch.eye(30).to_sparse(), list(warnings.filters)
    threads = [
        threading.Thread(target=lambda: [summarize(sparse, DisplayOptions()) for _ in range(40)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before
