"""Compute the statistics of all weights with threads or any executor."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Literal

from tensornp.core.lowlevel.attributes import an_instance, error_text
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.threads import num_cores
from tensornp.core.values.stats.compute import Tally
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.relations import identity_of
from tensornp.models.entries.source import StoredSource
from tensornp.models.names.quoted import shown_name
from tensornp.models.scan.table import ScanTable

_MAX_WAITING = 32
"""Tasks that an executor has at once."""
_TOLD_EVERY_S = 0.2
_DELAY_S = 1.0
Progress = Callable[[int, int], object]
"""Is told how many bytes of how many were read; where it returns False, a scan ends as by Ctrl-C."""


def scan_entries(
    entries: Iterable[WeightEntry], *, executor: Executor | None = None, progress: Progress | None = None
) -> ScanTable:
    """Return the statistics of `entries` by name; tied weights are read once.

    Ctrl-C returns the finished statistics with `complete` false. BadRequestError if `executor` is no executor, or a
    weight lies in the memory of this process.
    """
    wanted = [entry for entry in entries if not entry._is_nothing]
    if executor is not None:
        _check_executor(executor, wanted)
    table = ScanTable(wanted)
    tied: dict[object, list[WeightEntry]] = {}
    for entry in wanted:
        tied.setdefault(identity_of(entry), []).append(entry)
    read = [same[0] for same in tied.values()]
    told = _Told(progress, sum(entry.nbytes for entry in read))
    begin = time.monotonic()
    try:
        threads = ThreadPoolExecutor(num_cores()) if executor is None else nullcontext(executor)
        with threads as pool, closing(_read(read, pool, told)) as run:
            for entry, found in run:
                for one in tied[identity_of(entry)]:
                    table.note(one, found)
        table.complete = True
    except (KeyboardInterrupt, _StoppedError):
        pass
    table.settle()
    table.seconds = time.monotonic() - begin
    return table


class _Told:
    """Reports now and then how far a scan has come."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done, self._last = progress, total, 0.0, 0.0

    def add(self, nbytes: float) -> None:
        self._done += nbytes
        is_end = self._done >= self._total - 0.5
        if self._progress is not None and (is_end or time.monotonic() - self._last > _TOLD_EVERY_S):
            self._last = time.monotonic()
            if self._progress(round(self._done), self._total) is False:
                raise _StoppedError


class _StoppedError(Exception):
    """The progress function has ended the scan."""


def _check_executor(executor: Any, entries: list[WeightEntry]) -> None:
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise BadRequestError(f"executor must be a concurrent.futures.Executor, got {an_instance(executor)}")
    live = next((one for one in entries if not isinstance(one._source, StoredSource) and not one.problem), None)
    if live is not None:
        raise BadRequestError(
            f"{shown_name(live.name)} lies in the memory of this process, and no executor reads it; leave executor out"
        )


def why_failed(entry: WeightEntry, error: Exception) -> str:
    """Return why a weight could not be read; torch raises anything for a broken tensor."""
    if isinstance(error, MemoryError) and not isinstance(error, TensornpError):
        return f"there is no memory for its {entry.nbytes:,} bytes"
    return str(error) if isinstance(error, TensornpError) else error_text(error).partition("\n")[0]


def _read(
    entries: list[WeightEntry], executor: Executor, told: _Told
) -> Generator[tuple[WeightEntry, TensorStats | str], None, None]:
    """Read weights in tasks of bounded size; results are merged in the order of the file."""
    waiting: deque[tuple[WeightEntry, list[Future[Tally]]]] = deque()
    try:
        for entry in entries:
            source, num_tasks = entry._source, 0
            if isinstance(source, StoredSource) and not entry.problem and entry._packed is None:
                num_tasks = source.num_tasks
            if not num_tasks:
                # It is in memory, or not shared out.
                try:
                    yield entry, entry.stats()
                except Exception as error:
                    yield entry, why_failed(entry, error)
                told.add(entry.nbytes)
                continue
            while sum(len(futures) for _, futures in waiting) >= _MAX_WAITING:
                yield waiting[0][0], _finished(*waiting[0], told)
                waiting.popleft()
            waiting.append((entry, [_submitted(executor, source, number) for number in range(num_tasks)]))
        while waiting:
            yield waiting[0][0], _finished(*waiting[0], told)
            waiting.popleft()
    finally:
        for _, futures in waiting:
            for future in futures:
                future.cancel()


def _submitted(executor: Executor, source: Any, number: int) -> Future[Tally]:
    try:
        future = executor.submit(tally_of, source, number)
    except Exception as error:
        raise BadRequestError(f"the executor cannot submit tasks: {str(error) or type(error).__name__}") from None
    if not isinstance(future, Future):
        raise BadRequestError(f"executor.submit() must return a Future, got {an_instance(future)}")
    return future


def _finished(entry: WeightEntry, futures: list[Future[Tally]], told: _Told) -> TensorStats | str:
    """Wait for the tasks of a weight, and merge their results."""
    source: Any = entry._source
    tallies: list[Tally] = []
    why = ""
    for future in futures:
        try:
            tallies.append(future.result())
        except (Exception, CancelledError) as error:
            why = str(error) or type(error).__name__
        told.add(entry.nbytes / len(futures))
    return why or source.put_together(tallies)


def tally_of(source: StoredSource, number: int) -> Tally:
    """Carry one task out; an executor calls it where the same file can be read."""
    return source.tally(number)


@contextmanager
def progress_of(chosen: Progress | Literal[False] | None, what: str) -> Iterator[Progress | None]:
    """Return the function that the user chose, None for False, and a bar for None."""
    if chosen is not None:
        if chosen is not False and not callable(chosen):
            raise BadRequestError(f"progress must be a function of two numbers or False, got {quoted(chosen)}")
        yield chosen or None
        return
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    bar = tqdm(desc=what, unit="B", unit_scale=True, leave=False, delay=_DELAY_S, disable=sys.stderr is None)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    with bar:
        yield tell
