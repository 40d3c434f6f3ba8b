"""One streamed pass over all blocks of a tensor, in tasks of a fixed size, so that threads change no bit of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.lowlevel.workers import carried_out
from tensornp.core.memory.blocks import BLOCK_NUMEL
from tensornp.core.memory.fingerprint import fingerprint, fingerprint_of_array
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import is_storage, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of, stood_for
from tensornp.core.tensor.weight import values_of
from tensornp.core.values.reading.stored import StoredValues
from tensornp.core.values.reading.supply import Supply, supply_of
from tensornp.core.values.stats.by_axis import stats_by_axis
from tensornp.core.values.stats.record import HistogramChoice, TensorStats
from tensornp.core.values.stats.tasks import Tally, Task, Tasks
from tensornp.errors import BadRequestError, NoDataError, NotReadError

Array = np.ndarray[Any, Any]
_PARALLEL_NUMEL = 2**22
Progress = Callable[[int, int], bool]
"""Is told how many elements of how many were read; False ends the scan."""


@never_compiled
def stats(tensor: Any, *, histogram: HistogramChoice = "auto", axis: int | None = None) -> TensorStats:
    """Compute the statistics of a tensor or an array in one pass.

    Parameters
    ----------
    tensor : torch.Tensor, an object that stands for one, numpy.ndarray, WeightEntry
        Complex elements count by their modulus; `real` and `imag` of the result describe the parts.
    histogram : "auto", "all" or None
        "auto" takes all elements up to 2**24, and an even sample of 2**20 above that. "all" takes all. None omits the
        distribution.
    axis : int, optional
        Compute an array of statistics, one for each index of this dimension, without a distribution.

    Returns
    -------
    TensorStats
        Its `scope` says which elements were read.

    Raises
    ------
    NoDataError
        If there are no values: meta, fake, uninitialized, freed, or inside a tracer or transform.
    NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        If `tensor` has no numbers.
    BadRequestError
        For an axis that does not exist, or another `histogram`.

    Notes
    -----
    - Cost: each stored element is read once, on its own device, with one transfer at the end.
    - Memory: a few MiB, with a distribution up to 40 MiB.
    - Nothing is changed. The GIL is free most of the time.
    """
    if histogram is not None and not (isinstance(histogram, str) and histogram in ("auto", "all")):
        raise BadRequestError(f'histogram is "auto", "all" or None, not {quoted(histogram)}')
    return scan(values_of(tensor), histogram=histogram, axis=axis)


@outside_modes
def scan(
    obj: Any,
    *,
    histogram: HistogramChoice = "auto",
    axis: int | None = None,
    progress: Progress | None = None,
    num_threads: int | None = None,
    in_depth: bool = False,
    info: TensorInfo | None = None,
    caller: str = "stats",
) -> TensorStats:
    """Return the statistics of `obj`, as `stats`; `progress` is told after each task, and may end the scan.

    With `progress`, other threads are let in between two tasks. With `in_depth`, those that stand out are told. `info`
    is what `inspect` tells of a tensor, where it was asked already.
    """
    supply = supply_of(obj, axis, info=info, caller=caller)
    if type(obj) is StoredValues and obj.is_sequential:
        num_threads = 1
    is_large = supply.numel > BLOCK_NUMEL
    before = _marks_of(obj) if is_large else None
    try:
        found = scan_supply(supply, histogram=histogram, progress=progress, num_threads=num_threads, in_depth=in_depth)
    except NotReadError as reason:
        raise NoDataError(f"the values cannot be read: {reason}") from None
    if is_large and before != _marks_of(obj):
        return replace(found, scope=f"{found.scope}, changed while it was read", changed_while_read=True)
    return found


def scan_supply(
    supply: Supply,
    *,
    histogram: HistogramChoice = "auto",
    progress: Progress | None = None,
    num_threads: int | None = None,
    in_depth: bool = False,
) -> TensorStats:
    """Return the statistics of what `supply` brings, along its axis if it has one."""
    # Whatever the user has chosen: NaN and overflow are what is counted here.
    with np.errstate(all="ignore"):
        if supply.axis is not None:
            return stats_by_axis(supply)
        tasks = Tasks(supply, histogram, in_depth=in_depth)
        return _Pass(supply, tasks, progress, num_threads or _default_threads(supply.numel)).run()


def _default_threads(numel: int) -> int:
    return threads.num_cores() if numel >= _PARALLEL_NUMEL else 1


def _marks_of(obj: Any) -> Any:
    """Return what another thread's write to `obj` changes: its version, and the fingerprint of a sample."""
    try:
        if is_array(obj):
            return fingerprint_of_array(np.ndarray.view(obj, np.ndarray), 0)
        while is_storage(obj) or (is_tensor_like(obj) and stand_in_of(obj) is not None):
            obj = tensor_of(obj) if is_storage(obj) else stood_for(obj)
        info = inspect(obj)
        return info.version, fingerprint(obj, 0, info)
    except Exception:
        # What cannot be told is not claimed.
        return None


class _Pass:
    """One pass over all parts, in this thread or in several."""

    def __init__(self, supply: Supply, tasks: Tasks, progress: Progress | None, num_threads: int) -> None:
        self._supply, self._progress, self._num_threads = supply, progress, num_threads
        self._tasks = tasks
        self._done = supply.zeros
        self._tallies: dict[int, Tally] = {}

    def run(self) -> TensorStats:
        parts = self._supply.parts
        try:
            in_place = {id(part): part.can_be_read_in_place() for part in parts} if self._progress is None else {}
            self._carry_out(in_place if any(in_place.values()) else {})
        except _StoppedError:
            pass
        return self._tasks.result([self._tallies[number] for number in sorted(self._tallies)])

    def _carry_out(self, steady: dict[int, bool]) -> None:
        with closing(carried_out(lambda task: self._tally(task, steady), self._tasks, self._num_threads)) as tallies:
            for number, tally in enumerate(tallies):
                self._note(number, tally)

    def _note(self, number: int, tally: Tally) -> None:
        self._tallies[number] = tally
        self._done += tally.numel
        if self._progress is not None and not self._progress(self._done, self._supply.numel):
            raise _StoppedError

    def _tally(self, task: Task, steady: dict[int, bool]) -> Tally:
        if steady or self._progress is None:
            return self._tasks.tally(task, in_place=steady.get(id(task.part), False))
        return self._tasks.tally(task, in_place=task.part.can_be_read_in_place())


class _StoppedError(Exception):
    """The scan was ended from outside."""
