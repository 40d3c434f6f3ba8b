"""Read a source in tasks of a fixed size; no executor changes a bit of the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.memory.digest import digest_of
from tensornp.core.values.blocks import Block, Part
from tensornp.core.values.scopes import PARTIAL
from tensornp.core.values.sources import Source
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.channels import add_by_index, layout_of, norms_of
from tensornp.core.values.stats.distribution import Counter, Distribution, added_up
from tensornp.core.values.stats.distribution import of_zeros as zeros_counted
from tensornp.core.values.stats.figures import Figures, combined, figures_of, modulus_of, of_zeros, times
from tensornp.core.values.stats.record import HistogramChoice, TensorStats, stats_of_figures

Array = np.ndarray[Any, Any]
ALL_NUMEL = 2**24
"""Elements up to which all are counted in the distribution, unless others are requested."""
SAMPLE_NUMEL = 2**20
"""Elements of a sample, at least."""
TASK_BLOCKS = 64


@dataclass
class Tally:
    """The result of one task, of bounded size, which can be sent to another process.

    `figures` are those of the numbers; for complex ones, of the modulus, the real and the imaginary part.
    """

    figures: tuple[Figures, ...]
    distribution: Distribution | None
    numel: int
    squares: tuple[Array, ...] = ()
    digest: bytes = b""


@dataclass
class Task:
    """Some blocks of a part."""

    part: Part
    blocks: list[Block]


class Tasks:
    """All tasks of one pass, in their order, and the merge of their results.

    `in_depth` also finds channels that stand out, and a fingerprint of equal values: a quarter longer.
    """

    def __init__(self, source: Source, histogram: HistogramChoice, *, in_depth: bool = False) -> None:
        self._source, self._has_distribution = source, histogram is not None
        self._num_figures = 3 if source.dtype.startswith("complex") else 1
        self._in_depth = in_depth and source.order is not None
        self._layout = layout_of(source.shape, source.order, source.dtype) if in_depth else ()
        num_read = sum([part.numel for part in source.parts])
        self._kernels = fast.load() if 4 * num_read > fast.MAX_NBYTES_PLAIN else None
        # An odd step, so that a sample does not come from few columns of a matrix.
        self._one_in = 1 if histogram == "all" or num_read <= ALL_NUMEL else num_read // SAMPLE_NUMEL | 1

    def __iter__(self) -> Iterator[Task]:
        for part in self._source.parts:
            blocks = part.blocks()
            while some := list(itertools.islice(blocks, TASK_BLOCKS)):
                yield Task(part, some)

    @np.errstate(all="ignore")
    def tally(self, task: Task) -> Tally:
        """Return the result of one task."""
        part, figures = task.part, [Figures()] * self._num_figures
        counter = Counter(self._kernels) if self._has_distribution else None
        squares, digests = [np.zeros(along.size) for along in self._layout], []
        sampled = []
        for block, found in zip(task.blocks, part.read(task.blocks), strict=True):
            numbers = found.compressed() if hasattr(found, "compressed") else found
            if self._in_depth:
                digests.append(digest_of(numbers))
                self._add_squares(squares, numbers, block.start[0])
            several = [numbers]
            if numbers.dtype.kind == "c":
                several = [modulus_of(numbers), np.ascontiguousarray(numbers.real), np.ascontiguousarray(numbers.imag)]
            new = [self._figures_of(one) for one in several]
            figures = [combined(pair) for pair in zip(figures, new, strict=True)]
            if counter is not None:
                finite = several[0] if new[0].finite == numbers.size else several[0][np.isfinite(several[0])]
                if self._one_in == 1:
                    counter.add(finite)
                else:
                    sampled.append(finite[:: self._one_in].copy())
        if counter is not None and sampled:
            counter.add(np.concatenate(sampled))
        numel = sum(math.prod(block.shape) for block in task.blocks) * part.times * part.per_element
        return Tally(
            tuple(times(one, part.times) for one in figures),
            counter.finish(factor=part.times, one_in=self._one_in) if counter is not None else None,
            numel, tuple(squares), digest_of(b"".join(digests)),
        )  # fmt: skip

    def _figures_of(self, numbers: Array) -> Figures:
        if self._kernels is not None and numbers.dtype == np.float32 and numbers.size:
            return self._kernels.figures_of(numbers) or figures_of(numbers)
        return figures_of(numbers)

    def _add_squares(self, squares: list[Array], numbers: Array, start: int) -> None:
        if squares:
            wide = np.square(numbers, dtype=np.float64)
            if numbers.dtype == np.float64:
                # A square that is too small for a float is unknown, and not zero.
                wide[(wide == 0) & (numbers != 0)] = np.nan
            for sums, along in zip(squares, self._layout, strict=True):
                add_by_index(sums, wide, start, along.inner)

    def result(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tallies, in the order of their tasks."""
        source, known = self._source, list(tallies)
        done = sum([tally.numel for tally in known])
        is_whole = done + source.zeros == source.numel
        zeros = source.zeros if is_whole else 0
        zero = 0 if source.dtype.startswith(("int", "uint", "bool")) else 0.0
        every = [*[tally.figures for tally in known], (of_zeros(zeros, zero),) * self._num_figures]
        figures, *others = map(combined, zip(*every, strict=True))
        scope = source.scope
        if not is_whole:
            scope = f"{PARTIAL}: {done:,} of {source.numel:,} elements"
        elif source.is_masked:
            scope = f"{figures.count:,} of {source.numel:,} shown"
        parts = {name: stats_of_figures(of, scope=scope) for name, of in zip(("real", "imag"), others, strict=False)}
        distributions = [tally.distribution for tally in known if tally.distribution is not None]
        if self._has_distribution and (zeros or not distributions):
            distributions.append(zeros_counted(zeros, self._one_in))
        distribution = added_up(distributions) if distributions else None
        deeper = self._deeper(known) if is_whole and self._in_depth else {}
        return stats_of_figures(figures, scope=scope, distribution=distribution, **deeper, **parts)

    def _deeper(self, known: list[Tally]) -> dict[str, Any]:
        order = repr((self._source.order, self._source.dtype, self._source.shape)).encode()
        return {
            "channels": norms_of(self._layout, (tally.squares for tally in known)),
            "fingerprint": digest_of(b"".join([order, *(tally.digest for tally in known)])).hex(),
        }
