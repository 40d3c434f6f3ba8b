"""One streamed pass over all blocks of a tensor, in tasks of a fixed size, so that threads change no bit of it."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import apart, never_compiled
from tensornp.core.lowlevel.silence import silence_warnings
from tensornp.core.memory.fingerprint import fingerprint, fingerprint_of_array
from tensornp.core.memory.strided import BLOCK_NUMEL, Block
from tensornp.core.tensor.form import is_storage, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of, stood_for
from tensornp.core.values.blocks import DevicePart, Part
from tensornp.core.values.by_axis import stats_by_axis
from tensornp.core.values.distribution import Counter, Distribution, Scheme, added_up, scheme_of
from tensornp.core.values.figures import Figures, combined, figures_of, modulus_of, of_zeros, times
from tensornp.core.values.on_device import figures_on_device
from tensornp.core.values.sampler import Sampler
from tensornp.core.values.stats import HistogramChoice, TensorStats, stats_of_figures
from tensornp.core.values.supply import Supply, supply_of
from tensornp.errors import BadRequestError, NoDataError, NotReadError

Array = np.ndarray[Any, Any]
ALL_NUMEL = 2**24
"""Elements up to which the distribution is of all of them, unless it is asked for."""
SAMPLE_NUMEL = 2**20
"""Elements of the sample past that."""
TASK_BLOCKS = 64
_PARALLEL_NUMEL = 2**22
_NUM_THREADS = 2
Progress = Callable[[int, int], bool]
"""Is told how many elements of how many were read; False ends the scan."""


@never_compiled
def stats(tensor: Any, *, histogram: HistogramChoice = "auto", axis: int | None = None) -> TensorStats:
    """Return the statistics of the elements of a tensor or an array, of any kind, in one pass.

    Parameters
    ----------
    tensor : torch.Tensor, an object that stands for one, numpy.ndarray
        Of complex elements the figures are those of the modulus, and `real` and `imag` have those of the parts.
    histogram : "auto", "all" or None
        From which elements the distribution comes: all up to 2**24 and past that a sample of 2**20, spread evenly; all;
        or there is none, and the result takes less than 300 bytes.
    axis : int, optional
        Gives each figure as an array, with one for each index of that dimension; without a distribution.

    Returns
    -------
    TensorStats
        Its `scope` tells what was read.

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
    Reads every stored element once, block by block, in a few MiB of new memory (with a distribution, up to 40); on an
    accelerator there, with one transfer in the end. Nothing is changed, and the GIL is free most of the time.
    """
    if histogram is not None and not (isinstance(histogram, str) and histogram in ("auto", "all")):
        raise BadRequestError(f'histogram is "auto", "all" or None, not {histogram!r}')
    return scan(tensor, histogram=histogram, axis=axis)


@apart
def scan(
    obj: Any,
    *,
    histogram: HistogramChoice = "auto",
    axis: int | None = None,
    progress: Progress | None = None,
    num_threads: int | None = None,
) -> TensorStats:
    """Return the statistics of `obj`, as `stats`; `progress` is told after each task, and may end the scan.

    With `progress`, other threads are let in between two tasks.
    """
    supply = supply_of(obj, axis)
    is_large = supply.numel > BLOCK_NUMEL
    before = _marks_of(obj) if is_large else None
    try:
        found = scan_supply(supply, histogram=histogram, progress=progress, num_threads=num_threads)
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
) -> TensorStats:
    """Return the statistics of what `supply` brings, along its axis if it has one, as `scan`; call it `apart`."""
    # Whatever the user has chosen: NaN and overflow are what is counted here.
    with np.errstate(all="ignore"):
        if supply.axis is not None:
            return stats_by_axis(supply)
        return _Pass(supply, histogram, supply.numel, progress, num_threads or _default_threads(supply.numel)).run()


def _default_threads(numel: int) -> int:
    return min(_NUM_THREADS, os.cpu_count() or 1) if numel >= _PARALLEL_NUMEL else 1


def _marks_of(obj: Any) -> Any:
    """Return what another thread's write to `obj` changes: its version, and the fingerprint of a sample."""
    try:
        if is_array(obj):
            return fingerprint_of_array(np.ndarray.view(obj, np.ndarray), 0)
        while is_storage(obj) or (is_tensor_like(obj) and stand_in_of(obj) is not None):
            obj = tensor_of(obj) if is_storage(obj) else stood_for(obj)
        return inspect(obj).version, fingerprint(obj, 0)
    except Exception:
        # What cannot be told is not claimed.
        return None


@dataclass
class _Tally:
    """What one task has found."""

    figures: Figures
    real: Figures
    imag: Figures
    distribution: Distribution | None
    numel: int


@dataclass
class _Task:
    part: Part
    first: int
    blocks: list[Block]


@dataclass
class _Pass:
    """One pass over all parts."""

    supply: Supply
    histogram: HistogramChoice
    numel: int
    progress: Progress | None
    num_threads: int
    done: int = 0
    tallies: dict[int, _Tally] = field(default_factory=dict)

    def run(self) -> TensorStats:
        self.scheme = self._scheme()
        num_read = sum(part.numel for part in self.supply.parts)
        self.sampler = None if self.histogram == "all" or num_read <= ALL_NUMEL else Sampler(num_read, SAMPLE_NUMEL)
        tasks = self._tasks()
        try:
            in_place = [part.can_be_read_in_place() for part in self.supply.parts] if self.progress is None else []
            with threads.GATE if any(in_place) else nullcontext():
                # Asked again, behind the gate.
                steady = {id(p): p.can_be_read_in_place() for p in self.supply.parts} if any(in_place) else {}
                self._carry_out(tasks, steady)
        except _StoppedError:
            pass
        return self._result()

    def _scheme(self) -> Scheme | None:
        if self.histogram is None:
            return None
        is_complex = self.supply.dtype.startswith("complex")
        return scheme_of("float64" if is_complex else self.supply.dtype)

    def _tasks(self) -> Iterator[_Task]:
        first = 0
        for part in self.supply.parts:
            blocks = part.blocks()
            while some := list(itertools.islice(blocks, TASK_BLOCKS)):
                yield _Task(part, first, some)
                first += len(some)

    def _carry_out(self, tasks: Iterator[_Task], steady: dict[int, bool]) -> None:
        if self.num_threads == 1:
            for number, task in enumerate(tasks):
                self._note(number, self._tally(task, steady))
            return
        pool = ThreadPoolExecutor(self.num_threads)
        waiting: dict[Future[_Tally], int] = {}
        try:
            for number, task in enumerate(tasks):
                future = _submitted(pool, self._tally, task, steady)
                waiting[future] = number
                if len(waiting) >= 2 * self.num_threads:
                    self._collect(waiting)
            while waiting:
                self._collect(waiting)
        finally:
            pool.shutdown(cancel_futures=True)

    def _collect(self, waiting: dict[Future[_Tally], int]) -> None:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            self._note(waiting.pop(future), future.result())

    def _note(self, number: int, tally: _Tally) -> None:
        self.tallies[number] = tally
        self.done += tally.numel
        if self.progress is not None and not self.progress(self.done + self.supply.zeros, self.numel):
            raise _StoppedError

    def _tally(self, task: _Task, steady: dict[int, bool]) -> _Tally:
        part = task.part
        numel = sum(math.prod(block.shape) for block in task.blocks) * part.times * part.per_element
        if isinstance(part, DevicePart) and self.scheme is None:
            found = figures_on_device(part, task.blocks)
            if found is not None:
                figures, real, imag = (times(one, part.times) for one in found)
                return _Tally(figures, real, imag, None, numel)
        worker = _Worker(self.scheme, self.sampler, task.first)
        if steady or self.progress is None:
            part.use_each(task.blocks, worker.use, in_place=steady.get(id(part), False))
        else:
            with threads.GATE:
                part.use_each(task.blocks, worker.use, in_place=part.can_be_read_in_place())
        return worker.finish(part.times, numel)

    def _result(self) -> TensorStats:
        tallies = [self.tallies[number] for number in sorted(self.tallies)]
        is_whole = self.done + self.supply.zeros == self.numel
        zeros = self.supply.zeros if is_whole else 0
        figures = combined([*(tally.figures for tally in tallies), of_zeros(zeros, self.supply.zero)])
        is_complex = self.supply.dtype.startswith("complex")
        parts = {}
        if is_complex:
            for name in ("real", "imag"):
                found = combined([*(getattr(tally, name) for tally in tallies), of_zeros(zeros, self.supply.zero)])
                parts[name] = stats_of_figures(found, scope=self._scope(figures, is_whole))
        distributions = [t.distribution for t in tallies if t.distribution is not None]
        if self.scheme is not None:
            distributions.append(_of_zeros(self.scheme, zeros, self.sampler))
        distribution = added_up(distributions) if distributions else None
        return stats_of_figures(figures, scope=self._scope(figures, is_whole), distribution=distribution, **parts)

    def _scope(self, figures: Figures, is_whole: bool) -> str:
        if not is_whole:
            return f"partial: {self.done:,} of {self.numel:,} elements"
        if self.supply.is_masked:
            return f"{figures.count:,} of {self.numel:,} shown"
        return self.supply.scope


def _submitted(pool: ThreadPoolExecutor, tally: Callable[..., _Tally], *arguments: Any) -> Future[_Tally]:
    """Have the pool do it; where Python ends, and takes no more work, it is done at once."""
    try:
        return pool.submit(tally, *arguments)
    except RuntimeError:
        done: Future[_Tally] = Future()
        done.set_result(tally(*arguments))
        return done


class _StoppedError(Exception):
    """The scan was ended from outside."""


def _of_zeros(scheme: Scheme, count: int, sampler: Sampler | None) -> Distribution:
    """Return the distribution of zeros that are stored nowhere; in a sample, as many of them as of the others."""
    one_in = sampler.one_in if sampler is not None else 1.0
    count = round(count / one_in)
    keys = np.zeros(min(count, 1), np.int32)
    # Their number is known, and no sample.
    return Distribution(scheme, keys, np.full(len(keys), count, np.int64), sampler is not None, one_in)


class _Worker:
    """Takes the blocks of one task."""

    def __init__(self, scheme: Scheme | None, sampler: Sampler | None, first: int) -> None:
        self._counter = Counter(scheme) if scheme is not None else None
        self._sampler = sampler
        self._ordinal = first
        self._sampled: list[Array] = []
        self._found: list[tuple[Figures, Figures, Figures]] = []

    def use(self, values: Array, _: Block) -> None:
        """Take the numbers of one block."""
        flat = values.reshape(-1)
        real = imag = Figures()
        if flat.dtype.kind == "c":
            parts = [np.ascontiguousarray(part) for part in (flat.real, flat.imag)]
            real, imag = map(figures_of, parts)
            flat = modulus_of(*parts)
        self._found.append((figures_of(flat), real, imag))
        if self._counter is not None and flat.size:
            if self._sampler is not None:
                # So few of each block that they are counted together.
                self._sampled.append(self._sampler.sample(flat, self._ordinal))
            else:
                self._counter.add(flat)
        self._ordinal += 1

    def finish(self, factor: int, numel: int) -> _Tally:
        """Return what was found, each element meant `factor` times."""
        found = [times(combined(parts), factor) for parts in zip(*self._found, strict=True)] or [Figures()] * 3
        distribution = None
        if self._counter is not None:
            if self._sampled:
                self._counter.add(np.concatenate(self._sampled))
            one_in = self._sampler.one_in if self._sampler is not None else 0.0
            distribution = self._counter.finish(factor=factor, one_in=one_in)
        return _Tally(found[0], found[1], found[2], distribution, numel)


silence_warnings(globals())
