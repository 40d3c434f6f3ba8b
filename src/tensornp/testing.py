"""What the author of a kind of tensor or of a file format needs: each is held to the promises that tensornp makes.

    from tensornp.testing import check_format, check_kind

Both raise AssertionError, in a sentence that names the first promise which is broken.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.to_numpy import plan, to_numpy
from tensornp.core.tensor.info import inspect
from tensornp.core.values.find.locate import locate
from tensornp.core.values.stats.compute import stats
from tensornp.errors import CopyRequiredError, TensornpError
from tensornp.models.comparing.compare import compare
from tensornp.models.weights import weights
from tensornp.render.static_card import card

Array = np.ndarray[Any, Any]
_FREE_NBYTES, _NBYTES_EACH = 2**22, 4096
"""Memory that a listing may take, and for each weight; and what a read may take beside what it brings."""
_RUN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
"""What the audit hook of Python calls what no reader does."""


def check_kind(make: Callable[[], Any], expected: Any) -> None:
    """Hold a class that stands for a tensor to the promises, whether it is registered or has ``__tensornp__``.

    Parameters
    ----------
    make : callable
        Makes an instance, each time a new one with the same values.
    expected : array_like
        The array that it must become, found without tensornp; of a few elements, so that all of them are printed.

    Raises
    ------
    AssertionError
        Where a value, a badge or an effect is not as promised.

    Examples
    --------
    >>> tnp.register_kind(Scaled, values=Scaled.dequantize, label="scaled")
    >>> check_kind(lambda: Scaled(codes, 0.5), codes * 0.5)
    """
    wanted, one = np.asarray(expected), make()
    _check_same("to_numpy", to_numpy(one), wanted)
    before = _state_of(one)
    shown = str(card(one))
    _check(repr(wanted) in shown, f"the card does not print what NumPy prints: {shown!r} has no {wanted!r}")
    for look in (inspect, plan, stats, lambda obj: card(obj)._repr_html_(), lambda obj: str(card([obj, {"x": obj}]))):
        look(one)
    _check(_state_of(one) == before, "a look has changed the object, random numbers, or the default dtype")
    _check_same("to_numpy after a look", to_numpy(one), wanted)

    copied = to_numpy(one, copy=True)
    _check(copied.flags.writeable, "copy=True gives an array that cannot be written")
    if copied.size:
        copied[...] = np.zeros((), copied.dtype)
    _check_same("to_numpy after a write to a copy", to_numpy(one), wanted)
    decided = plan(one)
    _check(not decided.shares_memory or not decided.writeable, "memory is shared by default, and can be written")
    try:
        shared = to_numpy(one, copy=False)
    except CopyRequiredError:
        shared = None
    if shared is not None and shared.size:
        again = to_numpy(one, copy=False)
        _check(np.shares_memory(shared, again), "copy=False gives memory of its own; give the same memory each time")
    _check_same("to_numpy of a container", to_numpy({"x": [one]})["x"][0], wanted)
    _check(compare(one, make()).equal, "compare does not find two of the same values equal")
    if wanted.dtype.kind in "biuf" and wanted.size:
        found = stats(one)
        _check(found.count == wanted.size, f"stats counts {found.count} elements, and there are {wanted.size}")
        _check(found.nan == np.isnan(wanted).sum(), "stats counts other NaNs")
        finite = wanted[np.isfinite(wanted)]
        if finite.size:
            _check((found.min, found.max) == (finite.min(), finite.max()), "stats finds another range")
            _check(wanted[locate(one, "max").indices[0]] == finite.max(), "locate finds another maximum")


def check_format(
    path: str | os.PathLike[str], expected: Mapping[str, Any], *, num_damaged: int = 100, seed: int = 0
) -> None:
    """Hold the reader of a file format to the promises: true values, bounded memory, nothing run, errors in sentences.

    Parameters
    ----------
    path : str or os.PathLike
        A sound file of the format, of some kB.
    expected : mapping of str to array_like
        The weights that it holds, by their names, as another library reads them.
    num_damaged : int, optional
        Copies of the file that are cut or changed at random, each of which must end in a `TensornpError`, or open.
    seed : int, optional
        By which they are chosen.

    Raises
    ------
    AssertionError
        Where a value, a plan or an error is not as promised, too much memory is taken, or something was run.
    """
    # What readers import is imported now.
    weights(path).scan(progress=False)
    with _nothing_runs(), _in_memory(_FREE_NBYTES + _NBYTES_EACH * len(expected), "to list the weights"):
        listed = weights(path)
    _check(list(listed) == list(expected), f"the weights are {list(listed)}, and not {list(expected)}")
    _check(not listed.problems, f"a sound file has problems: {listed.problems[:1]}")
    for name, array in expected.items():
        entry, wanted = listed[name], np.asarray(array)
        _check(entry.shape == wanted.shape, f"{name} has shape {entry.shape}, and not {wanted.shape}")
        for index in _indices(wanted.shape):
            with _nothing_runs(), _in_memory(_FREE_NBYTES + 4 * wanted[index].nbytes, f"to read {name}[{index}]"):
                made = entry.to_numpy(index)
            _check_same(f"{name}[{index}]", made, np.asarray(wanted[index]))
            told = entry.plan(index)
            _check(told.shape == made.shape, f"the plan of {name}[{index}] tells of shape {told.shape}")
        if wanted.dtype.kind in "biufc":
            _check(entry.stats() == stats(wanted), f"the statistics of {name} are not those of its array")
    _check_damaged(Path(path), num_damaged, random.Random(seed))


def _indices(shape: tuple[int, ...]) -> Iterator[Any]:
    yield ...
    if shape and shape[0]:
        yield from (0, -1, slice(None, None, -2), slice(0, 0), (..., slice(0, 1)))


def _check_damaged(path: Path, count: int, rng: random.Random) -> None:
    whole = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        damaged = Path(folder) / path.name
        for _ in range(count):
            data, at = bytearray(whole), rng.randrange(len(whole))
            if rng.random() < 0.3:
                del data[at:]
            else:
                # The beginning, which says where all else is, is met most.
                at = rng.randrange(min(len(whole), 512)) if rng.random() < 0.7 else at
                data[at : at + rng.choice([1, 2, 8])] = rng.randbytes(rng.choice([1, 2, 8]))
            damaged.write_bytes(data)
            said = f"a file of {len(whole):,} bytes that is damaged at byte {at:,}"
            try:
                with _nothing_runs(), _in_memory(_FREE_NBYTES + 16 * len(whole), f"to read {said}"):
                    for entry in weights(damaged).values():
                        if not entry.problem:
                            entry.to_numpy()
            except TensornpError as error:
                _check("\n" not in str(error), f"{said} ends in more than a sentence: {error}")
            except AssertionError:
                raise
            except Exception as error:
                raise AssertionError(f"{said} ends in {error!r}, and not in a CheckpointError") from error


class _Watch:
    """Notes what is run while it is on: an audit hook stays for as long as the process."""

    def __init__(self) -> None:
        self.is_on = self.is_there = False
        self.met: list[str] = []

    def begin(self) -> None:
        if not self.is_there:
            sys.addaudithook(self._note)
        self.is_there, self.is_on, self.met = True, True, []

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if self.is_on and event in _RUN:
            self.met.append(f"{event} {args[:1]}")


_WATCH = _Watch()


@contextmanager
def _nothing_runs() -> Iterator[None]:
    known = set(sys.modules)
    _WATCH.begin()
    try:
        yield
    finally:
        _WATCH.is_on = False
    # What is imported is tensornp's own, or belongs to the standard library.
    new = sorted(
        {name.partition(".")[0] for name in sys.modules.keys() - known} - {"tensornp"} - sys.stdlib_module_names
    )
    _check(not new and not _WATCH.met, f"what is read imports or runs something: {', '.join([*new, *_WATCH.met])}")


@contextmanager
def _in_memory(most: int, what: str) -> Iterator[None]:
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        yield
        taken = tracemalloc.get_traced_memory()[1] - start
    finally:
        if not was_tracing:
            tracemalloc.stop()
    _check(taken <= most, f"{what} takes {taken:,} bytes of memory, where {most:,} are enough")


def _state_of(obj: Any) -> tuple[Any, ...]:
    own = getattr(obj, "__dict__", {})
    held = [id(value) for value in own.values()]
    versions = [
        value._version for value in own.values() if isinstance(value, torch.Tensor) and not value.is_inference()
    ]
    rng = bytes(torch.get_rng_state().tolist()), str(np.random.get_state())
    return held, versions, rng, torch.get_default_dtype(), torch.is_grad_enabled()


def _check_same(what: str, made: Any, wanted: Array) -> None:
    _check(isinstance(made, np.ndarray), f"{what} gives {type(made).__name__}, and no array")
    _check(made.dtype == wanted.dtype, f"{what} gives {made.dtype}, and not {wanted.dtype}")
    _check(made.shape == wanted.shape, f"{what} gives shape {made.shape}, and not {wanted.shape}")
    is_float = wanted.dtype.kind in "fc"
    _check(np.array_equal(made, wanted, equal_nan=is_float), f"{what} gives {made!r}, and not {wanted!r}")


def _check(is_true: object, said: str) -> None:
    if not is_true:
        raise AssertionError(said)
