"""A pass over all blocks as tasks of a fixed size, so that neither threads nor other engines change a bit of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.memory.blocks import Block, batches
from tensornp.core.memory.digest import digest_of
from tensornp.core.values.reading.blocks import Part, StridedPart
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.core.values.reading.scopes import PARTIAL
from tensornp.core.values.reading.supply import Supply
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.channels import Along, ChannelSums, Sums, layout_of, norms_of
from tensornp.core.values.stats.codes import CodeCounter, as_codes, figures_from, has_codes
from tensornp.core.values.stats.distribution import Counter, Distribution, added_up
from tensornp.core.values.stats.fast import Kernels
from tensornp.core.values.stats.figures import Figures, combined, modulus_of, of_zeros, times
from tensornp.core.values.stats.keys import Scheme, scheme_of
from tensornp.core.values.stats.record import HistogramChoice, TensorStats, stats_of_figures
from tensornp.core.values.stats.sampler import Sampler
from tensornp.core.values.stats.sums import FigureSums

Array = np.ndarray[Any, Any]
ALL_NUMEL = 2**24
"""Elements up to which the distribution is of all of them, unless it is asked for."""
SAMPLE_NUMEL = 2**20
"""Elements of the sample past that."""
TASK_BLOCKS = 64
_MAX_ITEMSIZE = 16
_WALKED = ("float32", "float64", "uint8", "uint16")
"""Of what a compiled loop walks as it is stored: numbers, and codes."""


@dataclass
class Tally:
    """What one task has found; of bounded size, and it can be sent to another process.

    `figures` are those of the numbers; of complex ones, those of the modulus, the real and the imaginary part.
    """

    figures: tuple[Figures, ...]
    distribution: Distribution | None
    numel: int
    channels: tuple[Sums, ...] = ()
    digest: bytes = b""


@dataclass
class Task:
    """Some blocks of a part; `first` counts the blocks before them."""

    part: Part
    first: int
    blocks: list[Block]


class Tasks:
    """All tasks of one pass, in their order, and what their results are together.

    With `in_depth`, channels that stand out are looked for as well, and what tells equal values: a quarter longer.
    """

    def __init__(self, supply: Supply, histogram: HistogramChoice, *, in_depth: bool = False) -> None:
        self._supply = supply
        is_complex = supply.dtype.startswith("complex")
        self._num_figures = 3 if is_complex else 1
        self._keeps_distribution = histogram is not None
        self._has_codes = has_codes(supply, on_device=self._keeps_distribution)
        is_distributed = self._keeps_distribution or self._has_codes
        self._scheme = scheme_of("float64" if is_complex else supply.dtype) if is_distributed else None
        self._in_depth = in_depth and supply.order is not None
        self._layout = layout_of(supply.shape, supply.order, supply.dtype) if in_depth else ()
        num_read = sum([part.numel for part in supply.parts])
        is_large = num_read * _MAX_ITEMSIZE > fast.MAX_NBYTES_PLAIN and _nbytes_read(supply) > fast.MAX_NBYTES_PLAIN
        self._kernels = fast.load() if is_large else None
        is_sample = self._keeps_distribution and not self._has_codes and histogram != "all" and num_read > ALL_NUMEL
        self._sampler = Sampler(num_read, SAMPLE_NUMEL) if is_sample else None

    def __iter__(self) -> Iterator[Task]:
        first = 0
        for part in self._supply.parts:
            for some in batches(part.blocks(), TASK_BLOCKS):
                yield Task(part, first, some)
                first += len(some)

    def tally(self, task: Task, *, in_place: bool) -> Tally:
        """Carry one task out; `in_place` says whether nobody can take the memory away."""
        part = task.part
        _, shapes = zip(*task.blocks, strict=True)
        numel = sum(map(math.prod, shapes)) * part.times * part.per_element
        depth = _Depth(self._layout, self._kernels) if self._in_depth else None
        found: _OfCodes | _OfNumbers
        if self._has_codes:
            found = _OfCodes(CodeCounter(part, self._kernels), depth)
            part = as_codes(part)
        else:
            figures = list(map(FigureSums, [self._kernels] * self._num_figures))
            counter = Counter(self._scheme, self._kernels) if self._scheme is not None else None
            found = _OfNumbers(figures, counter, self._sampler, task.first, depth)
        is_walked_alone = self._kernels is not None and self._sampler is None and depth is None
        blocks = _in_one(part, task.blocks) if in_place and is_walked_alone else task.blocks
        part.use_each(blocks, found.use, in_place=in_place)
        return found.finish(part.times, numel)

    def result(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tallies, in the order of their tasks; where some are missing, it says so."""
        supply, known = self._supply, list(tallies)
        done = sum([tally.numel for tally in known])
        is_whole = done + supply.zeros == supply.numel
        zeros = supply.zeros if is_whole else 0
        every = [*[tally.figures for tally in known], (of_zeros(zeros, supply.zero),) * self._num_figures]
        figures, *others = map(combined, zip(*every, strict=True))
        scope = self._scope(figures, done, is_whole=is_whole)
        parts = {name: stats_of_figures(of, scope=scope) for name, of in zip(("real", "imag"), others, strict=False)}
        distributions = [tally.distribution for tally in known if tally.distribution is not None]
        if self._scheme is not None and (zeros or not distributions):
            distributions.append(_of_zeros(self._scheme, zeros, self._sampler))
        distribution = added_up(distributions) if distributions else None
        if self._has_codes and distribution is not None:
            figures = figures_from(distribution, figures)
            distribution = distribution if self._keeps_distribution else None
        deeper = self._deeper(known) if is_whole and self._in_depth else {}
        return stats_of_figures(figures, scope=scope, distribution=distribution, **deeper, **parts)

    def _deeper(self, known: list[Tally]) -> dict[str, Any]:
        """Return what is known besides figures, in the order of the tasks."""
        order = repr((self._supply.order, self._supply.dtype, self._supply.shape)).encode()
        return {
            "channels": norms_of(self._layout, (tally.channels for tally in known)),
            "fingerprint": digest_of(b"".join([order, *(tally.digest for tally in known)])).hex(),
        }

    def _scope(self, figures: Figures, done: int, *, is_whole: bool) -> str:
        supply = self._supply
        if not is_whole:
            return f"{PARTIAL}: {done:,} of {supply.numel:,} elements"
        if supply.is_masked:
            return f"{figures.count:,} of {supply.numel:,} shown"
        return supply.scope


def _in_one(part: Part, blocks: list[Block]) -> list[Block]:
    """Return blocks that follow one another as one, where a compiled loop walks them as they lie."""
    if not isinstance(part, StridedPart) or not part.is_row or part.dtype not in _WALKED:
        return blocks
    (start,), (last,), (length,) = blocks[0].start, *blocks[-1]
    return [Block((start,), (last + length - start,))]


def _nbytes_read(supply: Supply) -> int:
    return sum(part.numel // part.per_element * stored_dtype(part.dtype).itemsize for part in supply.parts)


def _of_zeros(scheme: Scheme, count: int, sampler: Sampler | None) -> Distribution:
    """Return the distribution of zeros that are stored nowhere; in a sample, as many of them as of the others."""
    one_in = sampler.one_in if sampler is not None else 1.0
    count = round(count / one_in)
    counter = Counter(scheme)
    counter.add(np.zeros(min(count, 1)))
    # Their number is known, and no sample.
    return replace(counter.finish(factor=count), is_sample=sampler is not None, one_in=one_in)


class _Depth:
    """What is known of the blocks of one task besides their figures: their channels, and what tells equal values."""

    def __init__(self, layout: tuple[Along, ...], kernels: Kernels | None) -> None:
        self._channels = ChannelSums(layout, kernels)
        self._digests: list[bytes] = []

    def add(self, values: Array, stored: Array, block: Block) -> None:
        """Take the numbers of a block, and how they are stored."""
        self._channels.add(values, block.start[0] if block.start else 0)
        self._digests.append(digest_of(stored))

    def finish(self) -> tuple[tuple[Sums, ...], bytes]:
        """Return the sums of the channels, and the digest of all."""
        return self._channels.finish(), digest_of(b"".join(self._digests))


class _OfCodes:
    """Takes the blocks of one task as codes of numbers."""

    def __init__(self, counter: CodeCounter, depth: _Depth | None) -> None:
        self._counter, self._depth = counter, depth

    def use(self, codes: Array, block: Block) -> None:
        """Take the codes of one block."""
        flat = codes.reshape(-1)
        self._counter.add(flat)
        if self._depth is not None:
            self._depth.add(self._counter.numbers(flat), flat, block)

    def finish(self, factor: int, numel: int) -> Tally:
        """Return what was found, each element meant `factor` times."""
        figures, distribution = self._counter.finish(factor)
        return Tally((figures,), distribution, numel, *(self._depth.finish() if self._depth is not None else ()))


class _OfNumbers:
    """Takes the blocks of one task as numbers."""

    def __init__(
        self,
        figures: list[FigureSums],
        counter: Counter | None,
        sampler: Sampler | None,
        first: int,
        depth: _Depth | None,
    ) -> None:
        self._figures, self._counter, self._sampler, self._depth = figures, counter, sampler, depth
        self._ordinal = first
        self._sampled: list[Array] = []

    def use(self, values: Array, block: Block) -> None:
        """Take the numbers of one block."""
        flat = values.reshape(-1)
        if self._depth is not None:
            self._depth.add(flat, flat, block)
        whole, *of_parts = self._figures
        if of_parts:
            parts = [np.ascontiguousarray(part) for part in (flat.real, flat.imag)]
            flat = modulus_of(*parts)
            for figures, part in zip(of_parts, parts, strict=True):
                figures.add(part)
        if self._counter is not None and self._sampler is None:
            self._counter.add(flat, whole)
        else:
            whole.add(flat)
        if self._sampler is not None and flat.size:
            # So few of each block that they are counted together.
            self._sampled.append(self._sampler.sample(flat, self._ordinal))
        self._ordinal += 1

    def finish(self, factor: int, numel: int) -> Tally:
        """Return what was found, each element meant `factor` times."""
        figures = tuple([times(sums.finish(), factor) for sums in self._figures])
        distribution = None
        if self._counter is not None:
            if self._sampled:
                self._counter.add(np.concatenate(self._sampled))
            one_in = self._sampler.one_in if self._sampler is not None else 0.0
            distribution = self._counter.finish(factor=factor, one_in=one_in)
        return Tally(figures, distribution, numel, *(self._depth.finish() if self._depth is not None else ()))
