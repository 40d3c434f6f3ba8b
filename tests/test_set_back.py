"""What is set is set back, wherever Ctrl-C ends it: all that sets something for others, interrupted everywhere."""

from __future__ import annotations

import gc
import os
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from child import in_fork
from gallery_child import shell as the_shell
from interrupts import interrupted_everywhere
from torch import _tensor_str
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import tensornp as tnp
from tensornp.core.lowlevel import modes, threads
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions

_are_functions_off = modes._is_torch_function_off


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextmanager
def _modes() -> Iterator[None]:
    with _Functions(), _Dispatches(), torch.device("cpu"):
        yield


@contextmanager
def _flushed() -> Iterator[None]:
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


class _Drawing(torch.nn.Module):
    """A parametrization that draws random numbers, and changes the default dtype."""

    def forward(self, weight):
        torch.set_default_dtype(torch.float64)
        return weight * torch.rand(()) * random.random() * np.random.rand()


class _Own:
    """An object that stands for a tensor."""

    def __tensornp__(self):
        return torch.ones(2)


def _is_open(lock: Any) -> bool:
    """Return whether another thread could take a lock."""
    found: list[bool] = []

    def take() -> None:
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found[0]


def _tables() -> list[dict[Any, Any]]:
    """Return all that the formatters of the shell have."""
    formatter = the_shell().display_formatter
    every = [*formatter.formatters.values(), formatter.mimebundle_formatter, formatter.ipython_display_formatter]
    return [dict(getattr(one, table)) for one in every
            for table in ("type_printers", "deferred_printers", "singleton_printers")]  # fmt: skip


STATE: dict[str, Callable[[], Any]] = {
    "garbage collector": gc.isenabled,
    "NumPy's errors": np.geterr,
    "NumPy's print options": np.get_printoptions,
    "torch's print options": lambda: dict(vars(_tensor_str.PRINT_OPTS)),
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "functions off": lambda: _are_functions_off is not None and _are_functions_off(),
    "function modes": lambda: list(map(id, _get_current_function_mode_stack())),
    "dispatch modes": lambda: list(map(id, _get_current_dispatch_mode_stack())),
    "functorch": lambda: modes._functorch_level and str(modes._functorch_level()),
    "tracer": torch._C._get_tracing_state,
    "denormals flushed": lambda: not np.float32(1e-45) * np.float32(1),
    "torch's threads": torch.get_num_threads,
    "default dtype": torch.get_default_dtype,
    "torch's random state": lambda: torch.get_rng_state().tolist(),
    "NumPy's random state": lambda: [*np.random.get_state()[1], *np.random.get_state()[2:]],
    "Python's random state": random.getstate,
    "warning filters": lambda: list(warnings.filters),
    "gate": lambda: _is_open(threads.GATE),
    "environment": lambda: dict(os.environ),
    "printers": _tables,
}
"""What others see of what is set: read after each interrupt."""


class _Row(NamedTuple):
    """An action, and of which files each bytecode is interrupted."""

    action: Callable[[Any], object]
    files: str
    surroundings: Callable[[], Any] = torch.enable_grad


def _around(folder: Path) -> SimpleNamespace:
    """Return what the actions look at."""
    m = torch.nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(m, "weight", _Drawing(), unsafe=True)
    torch.set_default_dtype(torch.float32)
    path = folder / "m.pt"
    torch.save({"w": torch.arange(4.0)}, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = torch.eye(3).to_sparse_csr()
    return SimpleNamespace(
        w=torch.arange(6.0, requires_grad=True), pictures=torch.rand(3, 8, 8), sparse=sparse, own=_Own(), path=path,
        explorer=tnp.weights(m), stored=tnp.weights(path), stats=tnp.stats(torch.randn(100)),
        array=tnp.weights({"a": np.array([1e300])})["a"], batch=[torch.ones(2)], model=torch.nn.Linear(2, 2),
    )  # fmt: skip


def _display(name: str) -> Callable[[Any], object]:
    return lambda a: the_shell().display_formatter.format(getattr(a, name))


def _preview(a: Any) -> object:
    return summarize(a.w, DisplayOptions(precision=3))


def _computed(a: Any) -> object:
    return a.explorer["weight"].to_numpy()


def _followed(a: Any) -> None:
    with tnp.follow():
        a.model(torch.ones(1, 2)).sum().backward()


_ERRORS = " float_errors.py _ufunc_config.py"
_COLLECTOR = " collector.py locks.py"
_MODES = " modes.py contextlib.py"
_SHELL = "printers.py standing_in.py formatters.py"
ROWS: dict[str, _Row] = {
    "frames of all threads": _Row(lambda a: threads.current_frames(), "threads.py" + _COLLECTOR),
    "a file": _Row(lambda a: tnp.weights(a.path), "opening/path.py" + _COLLECTOR),
    "totals": _Row(lambda a: tnp.weights(a.model).totals, "explorer.py" + _COLLECTOR),
    "an image": _Row(lambda a: tnp.image(a.pictures), "image.py" + _ERRORS),
    "an image in a range": _Row(lambda a: tnp.image(a.pictures, value_range=(0, 1)), "brightness.py" + _MODES),
    "a norm": _Row(lambda a: a.stats.norm, "stats/record.py" + _ERRORS),
    "a histogram": _Row(lambda a: a.stats.histogram, "stats/distribution.py" + _ERRORS),
    "a quantile": _Row(lambda a: a.stats.quantile(0.1), "stats/distribution.py" + _ERRORS),
    "a cast": _Row(lambda a: a.array.to_numpy(dtype="float32"), "entries/array.py" + _ERRORS),
    "a conversion": _Row(lambda a: tnp.to_numpy(a.w), "to_numpy.py modes.py"),
    "a conversion without grad": _Row(lambda a: tnp.to_numpy(a.w), "modes.py", torch.no_grad),
    "a conversion in inference mode": _Row(lambda a: tnp.to_numpy(a.sparse), _MODES, torch.inference_mode),
    "a conversion under modes": _Row(lambda a: tnp.to_numpy(a.sparse), _MODES, _modes),
    "a conversion that keeps denormals": _Row(lambda a: tnp.to_numpy(a.sparse), _MODES, _flushed),
    "a stand-in": _Row(lambda a: tnp.to_numpy(a.own), "stand_ins.py" + _MODES, _modes),
    "a computed weight": _Row(lambda a: a.explorer["weight"].to_numpy(), "parametrized.py" + _MODES, _modes),
    "a preview": _Row(_preview, "preview.py" + _MODES),
    "a weight of a file": _Row(lambda a: a.stored["w"].to_numpy(), "source_file.py"),
    "weights of a file": _Row(lambda a: tnp.weights(a.path), "source_file.py"),
    "a pass": _Row(_followed, "module_hooks.py modes.py"),
    "a pass under a mode": _Row(_followed, "module_hooks.py modes.py", _Dispatches),
    "a pass under modes": _Row(_followed, "module_hooks.py modes.py", _modes),
    "the display of a tensor": _Row(_display("w"), _SHELL),
    "the display of a container": _Row(_display("batch"), _SHELL),
    "the display of a module": _Row(_display("model"), _SHELL),
}
"""Each place that sets something for others, and what is done there."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
@in_fork
def test_what_is_set_is_set_back(name: str) -> None:
    """Wherever Ctrl-C ends it, also while the error keeps its frames, and what these hold, alive."""
    row = ROWS[name]
    folder = TemporaryDirectory()
    around = _around(Path(folder.name))
    with folder, row.surroundings():
        # What is imported and kept on first use is no matter here.
        row.action(around)
        row.action(around)
        _state(), _num_open()
        before, num_open, num_places, reached = _state(), _num_open(), 0, set[str]()
        files = tuple(row.files.split())
        for where, error in interrupted_everywhere(lambda: row.action(around), lambda file: file.endswith(files)):
            after = _state()
            assert after == before, (where, [(what, before[what], after[what]) for what in before
                                             if after[what] != before[what]])  # fmt: skip
            assert error is None or isinstance(error, KeyboardInterrupt), where
            num_places += 1
            reached |= {file for file in files if where.partition(":")[0].endswith(file)}
        assert num_places > 10
        # A file that has moved would be interrupted nowhere.
        assert not (never := set(files) - reached), never
        del error
        gc.collect()
        assert _num_open() == num_open


def _state() -> dict[str, Any]:
    return {what: read() for what, read in STATE.items()}


def _num_open() -> int:
    """Return how many files are open; 0 where the system does not tell."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
