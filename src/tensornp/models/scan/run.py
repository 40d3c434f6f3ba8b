"""Compute the statistics of all weights with threads or any executor, and those of gradients."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Literal

from tensornp.core.lowlevel.attributes import an_instance, error_text
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.stats.compute import Tally, num_cores, stats
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import StoredSource
from tensornp.models.entries.relations import identity_of
from tensornp.models.names.quoted import shown_name
from tensornp.models.scan.table import ScanTable

_MAX_WAITING = 32
_DELAY_S = 1.0
Progress = Callable[[int, int], object]
"""Is told how many bytes of how many were read; where it returns False, a scan ends as by Ctrl-C."""


class _StoppedError(Exception):
    """The progress function has ended the scan."""


def scan_entries(
    entries: Iterable[WeightEntry], *, executor: Executor | None = None, progress: Progress | None = None
) -> ScanTable:
    """Return the statistics of `entries` by name; tied weights are read once.

    Ctrl-C returns the finished statistics with `complete` false. BadRequestError if `executor` is no executor, or a
    weight lies in the memory of this process.
    """
    wanted = [entry for entry in entries if not entry._is_nothing]
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise BadRequestError(f"executor must be a concurrent.futures.Executor, got {an_instance(executor)}")
    live = (one for one in wanted if not isinstance(one._source, StoredSource) and not one.problem)
    if executor is not None and (first := next(live, None)) is not None:
        where = "lies in the memory of this process, and no executor reads it; leave executor out"
        raise BadRequestError(f"{shown_name(first.name)} {where}")
    read: dict[object, WeightEntry] = {}
    for entry in wanted:
        read.setdefault(identity_of(entry), entry)
    found: dict[object, TensorStats | str] = {}
    complete, begin = False, time.monotonic()
    try:
        threads = ThreadPoolExecutor(num_cores()) if executor is None else nullcontext(executor)
        told = _told(progress, sum(entry.nbytes for entry in read.values()))
        with threads as pool, closing(_read(list(read.values()), pool, told)) as run:
            for entry, result in run:
                found[identity_of(entry)] = result
        complete = True
    except (KeyboardInterrupt, _StoppedError):
        pass
    results = {entry.name: found[key] for entry in wanted if (key := identity_of(entry)) in found}
    return ScanTable(wanted, results, complete, time.monotonic() - begin)


def _told(progress: Progress | None, total: int) -> Callable[[float], None]:
    """Return a function that adds read bytes, and tells `progress`."""
    done = 0.0

    def add(nbytes: float) -> None:
        nonlocal done
        done += nbytes
        if progress is not None and progress(round(done), total) is False:
            raise _StoppedError

    return add


def why_failed(entry: WeightEntry, error: Exception) -> str:
    """Return why a weight could not be read; torch raises anything for a broken tensor."""
    if isinstance(error, MemoryError) and not isinstance(error, TensornpError):
        return f"there is no memory for its {entry.nbytes:,} bytes"
    return str(error) if isinstance(error, TensornpError) else error_text(error).partition("\n")[0]


def _read(
    entries: list[WeightEntry], executor: Executor, told: Callable[[float], None]
) -> Generator[tuple[WeightEntry, TensorStats | str], None, None]:
    """Read weights in tasks of bounded size, merged in the order of the file."""
    waiting: deque[tuple[WeightEntry, list[Future[Tally]]]] = deque()
    try:
        for entry in entries:
            source: Any = entry._source
            is_shared_out = isinstance(source, StoredSource) and source.is_shared_out
            tasks = list(source.tasks()) if is_shared_out and not entry.problem and entry._packed is None else []
            if not tasks:
                try:
                    yield entry, entry.stats()
                except Exception as error:
                    yield entry, why_failed(entry, error)
                told(entry.nbytes)
                continue
            while sum(len(futures) for _, futures in waiting) >= _MAX_WAITING:
                yield _finished(*waiting[0], told)
                waiting.popleft()
            futures = [executor.submit(StoredSource.tally, source, number) for number in range(len(tasks))]
            waiting.append((entry, futures))
        while waiting:
            yield _finished(*waiting[0], told)
            waiting.popleft()
    finally:
        for _, futures in waiting:
            for future in futures:
                future.cancel()


def _finished(
    entry: WeightEntry, futures: list[Future[Tally]], told: Callable[[float], None]
) -> tuple[WeightEntry, TensorStats | str]:
    source: Any = entry._source
    tallies: list[Tally] = []
    why = ""
    for future in futures:
        try:
            tallies.append(future.result())
        except (Exception, CancelledError) as error:
            why = why_failed(entry, error)
        told(entry.nbytes / len(futures))
    return entry, why or source.tasks().result(tallies)


@contextmanager
def progress_of(chosen: Progress | Literal[False] | None, what: str) -> Iterator[Progress | None]:
    """Return the function that the user chose, None for False, and a bar for None."""
    if chosen is not None:
        if chosen is not False and not callable(chosen):
            raise BadRequestError(f"progress must be a function of two numbers or False, got {quoted(chosen)}")
        yield chosen or None
        return
    # `tqdm.auto` would leave a line in the saved notebook, and what stderr had stays as a red stripe.
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    out = sys.stdout if type(sys.stdout).__module__ == "ipykernel.iostream" else sys.stderr
    bar = tqdm(desc=what, unit="B", unit_scale=True, leave=False, delay=_DELAY_S, disable=out is None, file=out)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    with bar:
        yield tell


@outside_modes
def gradients_of(
    entries: Iterable[WeightEntry], unguarded: Unguarded, goes_on: Callable[[], bool] = lambda: True
) -> dict[str, TensorStats | None]:
    """Return statistics of the gradients of ordinary tensors by name, None for an unreadable one.

    `unguarded` tells whether some were left out.
    """
    found: dict[str, TensorStats | None] = {}
    for entry in entries:
        if not is_of_torch(entry.tensor) or not entry.requires_grad or not goes_on():
            continue
        gradient = unguarded.grad_of(entry.tensor)
        if gradient is None:
            continue
        try:
            found[entry.name] = stats(gradient, histogram=None)
        except TensornpError:
            found[entry.name] = None
    return found
