"""Compute statistics in tasks of a fixed size; no executor changes a bit."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.attributes import values_of
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.core.memory.changes import digest_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.strides import Block, pieces_of, place_of
from tensornp.core.values.blocks import Part
from tensornp.core.values.sources import Source, source_of
from tensornp.core.values.stats import fast, figures
from tensornp.core.values.stats.distribution import MAX_KEPT, NUM_CODES, add_codes, distribution_of, of_codes
from tensornp.core.values.stats.record import PARTIAL, HistogramChoice, TensorStats, sum_of
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
_PARALLEL_NUMEL, _MAX_CORES = 2**22, 8
"""Elements that several threads read, and threads at most, of which each may hold 8 MiB."""
ALL_NUMEL = 2**24
"""Elements up to which all are counted in the distribution, unless others are requested."""
SAMPLE_NUMEL = 2**20
"""Elements of a sample, at least."""
TASK_BLOCKS, _FUSED_BLOCKS = 64, 8
"""Blocks of a task, and those that are read at once, since the loop over blocks takes as long as that of numba."""
Progress = Callable[[int, int], bool]
"""Receives the number of elements read, and of all; False ends the scan."""


@outside_modes
def stats(tensor: Any, *, histogram: HistogramChoice = "auto", axis: int | None = None) -> TensorStats:
    """Compute the statistics of a tensor or an array in one pass.

    Parameters
    ----------
    tensor : torch.Tensor, an object that stands for one, numpy.ndarray, WeightEntry
        Complex elements count by their modulus.
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
    - Memory: a few MiB; a quantized tensor is dequantized as a whole.
    - Nothing is changed. The GIL is free most of the time.
    """
    if histogram is not None and not (isinstance(histogram, str) and histogram in ("auto", "all")):
        raise BadRequestError(f'histogram must be "auto", "all" or None, got {quoted(histogram)}')
    return scan(values_of(tensor), histogram=histogram, axis=axis)


def num_cores() -> int:
    # macOS and Windows have no affinity.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_CORES)


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
    """Return the statistics of `obj`, as `stats`; `progress` may end the scan after each task."""
    source = source_of(obj, axis, info=info, caller=caller)
    if source.axis is not None:
        return figures.stats_by_axis(source)
    tasks, done, found = Tasks(source, histogram, in_depth=in_depth), 0, list[Tally]()
    if num_threads is None:
        num_threads = num_cores() if tasks.numel >= _PARALLEL_NUMEL else 1
    with ExitStack() as stack:
        tallies: Any = map(tasks.tally, tasks)
        if num_threads > 1:
            tallies = stack.enter_context(ThreadPoolExecutor(num_threads)).map(tasks.tally, tasks)
            # Cancels the tasks that have not begun.
            stack.callback(tallies.close)
        for tally in tallies:
            found.append(tally)
            done += tally.stats.count
            if progress is not None and not progress(done, tasks.numel):
                break
    return tasks.result(found)


class Tally(NamedTuple):
    """The result of one task, of bounded size, which can be sent to another process."""

    stats: TensorStats
    squares: tuple[Array, ...] = ()
    digest: bytes = b""


class Tasks:
    """All tasks of a pass, and the merge of their results; `in_depth` finds channels and a fingerprint."""

    def __init__(self, source: Source, histogram: HistogramChoice, *, in_depth: bool = False) -> None:
        self.numel = source.numel
        self._source, self._has_distribution = source, histogram is not None
        self._in_depth = in_depth and source.order is not None
        self._is_complex = source.dtype.startswith("complex")
        self._layout = figures.layout_of(source.shape, source.order, source.dtype) if in_depth else ()
        num_read = sum([part.numel for part in source.parts])
        self._kernels = fast.load() if 4 * num_read > fast.MAX_NBYTES_PLAIN else None
        # An odd step, so that a sample does not come from few columns of a matrix.
        self._one_in = 1 if histogram == "all" or num_read <= ALL_NUMEL else num_read // SAMPLE_NUMEL | 1

    def __iter__(self) -> Iterator[tuple[Part, list[Block]]]:
        for part in self._source.parts:
            several = _FUSED_BLOCKS if part.dtype == "float32" else 1
            blocks = part.blocks(several)
            while some := list(itertools.islice(blocks, max(TASK_BLOCKS // several, 1))):
                yield part, some

    @np.errstate(all="ignore")
    def tally(self, task: tuple[Part, list[Block]]) -> Tally:
        (part, blocks), found = task, list[TensorStats]()
        numel = sum([math.prod(block.shape) for block in blocks]) * part.per_element
        squares, digests, kept, is_exact = [np.zeros(size) for _, size, _ in self._layout], [], [np.empty(0)], True
        one_in = min(self._one_in, part.numel)
        has_codes = self._has_distribution and one_in == 1 and numel > MAX_KEPT
        codes = np.zeros(NUM_CODES, np.int64) if has_codes else None
        for block, numbers in zip(blocks, part.read(blocks), strict=True):
            if self._in_depth:
                digests.append(digest_of(numbers))
                self._add_squares(squares, numbers, place_of(block.start, part.shape) * part.per_element)
            sizes = figures.modulus_of(numbers) if self._is_complex else numbers
            kernels = self._kernels if sizes.dtype == np.float32 else None
            new = figures.figures_of(sizes, figures.walk if kernels is None else kernels.walk, part.times)
            found.append(new)
            if self._has_distribution:
                finite = sizes if new.finite == new.count else sizes[np.isfinite(sizes)]
                if codes is None:
                    kept.append(finite[::one_in].astype(np.float64))
                else:
                    is_exact &= (add_codes if kernels is None else kernels.add_codes)(codes, finite)
        made = None
        if codes is not None:
            codes *= part.times
            made = of_codes(codes, is_exact=is_exact, one_in=one_in)
        elif self._has_distribution:
            numbers = np.concatenate(kept)
            made = distribution_of(numbers, np.full(numbers.size, part.times), one_in=one_in)
        digest = digest_of(b"".join(digests)) if digests else b""
        return Tally(replace(sum_of(found), distribution=made), tuple(squares), digest)

    def _add_squares(self, squares: list[Array], numbers: Array, start: int) -> None:
        for some in pieces_of(numbers) if squares else ():
            wide = np.square(some, dtype=np.float64)
            if some.dtype == np.float64:
                # A square that is too small for a float is unknown, and not zero.
                wide[(wide == 0) & (some != 0)] = np.nan
            for sums, (_, _, inner) in zip(squares, self._layout, strict=True):
                figures.add_by_index(sums, wide, start, inner)
            start += some.size

    @np.errstate(all="ignore")
    def result(self, tallies: Iterable[Tally]) -> TensorStats:
        source, known = self._source, list(tallies)
        found = sum_of([tally.stats for tally in known])
        if not known and self._has_distribution:
            found = replace(found, distribution=distribution_of(np.empty(0), np.empty(0, np.int64)))
        is_whole, scope = found.count == self.numel, source.scope
        if not is_whole:
            scope = f"{PARTIAL}: {found.count:,} of {self.numel:,} elements"
        found = replace(found, scope=scope, is_complex=self._is_complex)
        if not (is_whole and self._in_depth):
            return found
        order = repr((source.order, source.dtype, source.shape)).encode()
        fingerprint = digest_of(b"".join([order, *(tally.digest for tally in known)])).hex()
        channels = figures.norms_of(self._layout, (tally.squares for tally in known))
        return replace(found, channels=channels, fingerprint=fingerprint)
