"""Compute statistics in one streamed pass over all blocks of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.lowlevel.workers import carried_out
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.weight import values_of
from tensornp.core.values.blocks import BLOCK_NUMEL
from tensornp.core.values.sources import Source, source_of
from tensornp.core.values.stats.by_axis import stats_by_axis
from tensornp.core.values.stats.record import HistogramChoice, TensorStats
from tensornp.core.values.stats.tasks import Tally, Tasks
from tensornp.core.values.stored import StoredValues
from tensornp.errors import BadRequestError, NoDataError, NotReadError

Array = np.ndarray[Any, Any]
_PARALLEL_NUMEL = 2**22
Progress = Callable[[int, int], bool]
"""Receives the number of elements read, and of all; False ends the scan."""


@never_compiled
def stats(tensor: Any, *, histogram: HistogramChoice = "auto", axis: int | None = None) -> TensorStats:
    """Compute the statistics of a tensor or an array in one pass.

    Parameters
    ----------
    tensor : torch.Tensor, an object that stands for one, numpy.ndarray, WeightEntry
        Complex elements count by their modulus; `real` and `imag` of the result describe the parts.
    histogram : "auto", "all" or None
        "auto" counts all elements up to 2**24, and above that an even sample of at least 2**20. "all" counts all. None
        omits the distribution.
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
        If `axis` does not exist, or `histogram` is not one of its choices.

    Notes
    -----
    - Cost: each stored element is read once; from other devices, every block comes to the host.
    - Memory: a few MiB.
    - Nothing is changed. The GIL is free most of the time.
    """
    if histogram is not None and not (isinstance(histogram, str) and histogram in ("auto", "all")):
        raise BadRequestError(f'histogram must be "auto", "all" or None, got {quoted(histogram)}')
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
    """Return the statistics of `obj`, as `stats`; `progress` may end the scan after each task.

    `in_depth` also finds channels that stand out. `info` is the result of `inspect`, if it is known.
    """
    source = source_of(obj, axis, info=info, caller=caller)
    if type(obj) is StoredValues and obj.is_sequential:
        num_threads = 1
    is_large = source.numel > BLOCK_NUMEL and is_tensor(obj)
    before = inspect(obj).version if is_large else None
    try:
        found = scan_source(source, histogram=histogram, progress=progress, num_threads=num_threads, in_depth=in_depth)
    except NotReadError as reason:
        raise NoDataError(f"the values cannot be read: {reason}") from None
    if is_large and before != inspect(obj).version:
        return replace(found, scope=f"{found.scope}, changed while it was read", changed_while_read=True)
    return found


def scan_source(
    source: Source,
    *,
    histogram: HistogramChoice = "auto",
    progress: Progress | None = None,
    num_threads: int | None = None,
    in_depth: bool = False,
) -> TensorStats:
    """Return the statistics of a source, by its axis if it has one, as `scan`; call it outside all modes."""
    if source.axis is not None:
        with np.errstate(all="ignore"):
            return stats_by_axis(source)
    tasks, done, found = Tasks(source, histogram, in_depth=in_depth), source.zeros, list[Tally]()
    if num_threads is None:
        num_threads = threads.num_cores() if source.numel >= _PARALLEL_NUMEL else 1
    with closing(carried_out(tasks.tally, tasks, num_threads)) as tallies:
        for tally in tallies:
            found.append(tally)
            done += tally.numel
            if progress is not None and not progress(done, source.numel):
                break
    with np.errstate(all="ignore"):
        return tasks.result(found)
