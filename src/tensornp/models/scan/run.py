"""`WeightsExplorer.scan`: the statistics of all weights, by threads here or by any executor, with the same bits."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensornp.core.lowlevel.attributes import an_instance, error_text
from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.threads import num_cores
from tensornp.core.values.stats.compute import Tally
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import Called
from tensornp.models.entries.stored import StoredSource
from tensornp.models.files.remote_file import RemoteFile
from tensornp.models.names.quoted import shown_name
from tensornp.models.scan.progress import Progress
from tensornp.models.scan.table import ScanTable
from tensornp.models.storage.totals import identity_of

_Found = tuple[WeightEntry, TensorStats | str]
_MAX_WAITING = 32
"""Tasks that an executor has at once."""
_MAX_TRIES = 2
_STALLED_S = 60.0
"""Seconds without a finished task after which that is told."""
_EXECUTORS = {"ipyparallel": "client.executor()", "distributed": "client.get_executor()"}
"""By their packages, what others than executors lead to one."""
_DEATHS = ("EngineError", "KilledWorker")
"""Errors of ipyparallel and dask for a worker that has died."""
_TOLD_EVERY_S = 0.2


def scan_entries(
    entries: Iterable[WeightEntry],
    *,
    executor: Executor | None = None,
    resume: ScanTable | None = None,
    progress: Progress | None = None,
) -> ScanTable:
    """Return the statistics of `entries` by name; Ctrl-C returns what was finished, and is not `complete`.

    What `resume` has of the same weights is not read again, and tied ones are read once; what is registered as None is
    left out.

    Raises
    ------
    BadRequestError
        If `executor` is none or takes no work, or is to read what lies in the memory of this process, and for another
        `resume`.
    """
    wanted = [entry for entry in entries if not entry._is_nothing]
    if resume is not None and not isinstance(resume, ScanTable):
        raise BadRequestError(f"resume is what an earlier scan has returned, not {an_instance(resume)}")
    if executor is not None:
        _check_executor(executor, wanted)
    table = ScanTable(wanted, resume)
    tied: dict[object, list[WeightEntry]] = {}
    for entry in wanted:
        tied.setdefault(identity_of(entry), []).append(entry)
    left = [same[0] for same in tied.values() if any(one.name not in table for one in same)]
    told = _Told(progress, sum(same[0].nbytes for same in tied.values()), sum(entry.nbytes for entry in left))
    begin = time.monotonic()
    run = _here(left, told) if executor is None else _shared_out(left, executor, told)
    try:
        with closing(run):
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
    """Tells somebody now and then how far a scan has come."""

    def __init__(self, progress: Progress | None, total: int, left: int) -> None:
        self._progress, self._total, self._done, self._last = progress, total, float(total - left), 0.0

    def add(self, nbytes: float) -> None:
        """Note that so many bytes more were read."""
        self._done += nbytes
        is_end = self._done >= self._total - 0.5
        if self._progress is not None and (is_end or time.monotonic() - self._last > _TOLD_EVERY_S):
            self._last = time.monotonic()
            if self._progress(round(self._done), self._total) is False:
                raise _StoppedError


class _StoppedError(Exception):
    """The scan was ended by whom it was told to."""


def _check_executor(executor: Any, entries: list[WeightEntry]) -> None:
    leads_to = _EXECUTORS.get(type(executor).__module__.partition(".")[0])
    is_other = leads_to is not None and not isinstance(executor, Executor)
    if isinstance(executor, type) or is_other or not callable(getattr(executor, "submit", None)):
        what = f"the class {executor.__name__}" if isinstance(executor, type) else an_instance(executor)
        cure = f"; give {leads_to}" if is_other else ""
        raise BadRequestError(f"executor must be a concurrent.futures.Executor, got {what}{cure}")
    live = next((one for one in entries if not isinstance(one._source, StoredSource) and not one.problem), None)
    if live is not None:
        raise BadRequestError(
            f"{shown_name(live.name)} lies in the memory of this process, and no executor reads it; leave executor out"
        )


def _here(entries: list[WeightEntry], told: _Told) -> Generator[_Found, None, None]:
    """Have threads of this process read, one for each core."""
    sources = [one._source for one in entries if isinstance(one._source, StoredSource)]
    # A member of a zip is in one.
    files = {getattr(file, "file", file) for source in sources for file in source.files}
    with ExitStack() as kept, ThreadPoolExecutor(num_cores()) as pool, closing(_shared_out(entries, pool, told)) as run:
        for file in files:
            if isinstance(file, RemoteFile):
                kept.enter_context(file.scanned())
        yield from run


def _shared(entry: WeightEntry) -> StoredSource | None:
    """Return where a weight lies that is read in tasks; None of what is in memory, known, or has nothing to count."""
    source = entry._source
    if not isinstance(source, StoredSource) or entry.problem or entry._packed is not None:
        return None
    return source


def _at_once(entry: WeightEntry) -> _Found:
    """Read a weight that is not shared out: one in memory, with gaps, or whose statistics are known."""
    try:
        return entry, entry.stats()
    except TensornpError as error:
        return entry, str(error)
    except MemoryError:
        return entry, no_memory_for(entry)
    except Exception as error:
        # Of torch, of a tensor that is not sound: the others are read none the less.
        return entry, error_text(error).partition("\n")[0]


def no_memory_for(entry: WeightEntry) -> str:
    """Return why a weight has not been read where Python has raised MemoryError."""
    return f"there is no memory for its {entry.nbytes:,} bytes"


def _shared_out(entries: list[WeightEntry], executor: Executor, told: _Told) -> Generator[_Found, None, None]:
    """Have tasks of bounded size done, and put together what they bring, in the order of the file."""
    tasks = _SharedTasks(executor, told)
    try:
        for entry in entries:
            source = _shared(entry)
            num_tasks = source.num_tasks if source is not None else 0
            if source is None or not num_tasks:
                yield _at_once(entry)
                told.add(entry.nbytes)
                continue
            reading = _Reading(entry, source, num_tasks)
            for number in range(num_tasks):
                while tasks.num_asked >= _MAX_WAITING:
                    yield from tasks.finished()
                tasks.ask(reading, number)
        while tasks.num_asked:
            yield from tasks.finished()
    finally:
        tasks.cancel()


@dataclass
class _Reading:
    """A weight that is read in tasks: what they have brought, and why one has brought nothing."""

    entry: WeightEntry
    source: StoredSource
    num_tasks: int
    tallies: dict[int, Tally] = field(default_factory=dict)
    num_done: int = 0
    why: str = ""

    def outcome(self) -> TensorStats | str:
        """Return the statistics of all tasks, or why there are none."""
        return self.why or self.source.put_together(self.tallies[number] for number in sorted(self.tallies))


class _SharedTasks:
    """The tasks that an executor has at the moment."""

    def __init__(self, executor: Executor, told: _Told) -> None:
        self._executor, self._told = executor, told
        self._asked: dict[Future[Tally], tuple[_Reading, int, int]] = {}

    @property
    def num_asked(self) -> int:
        """How many there are."""
        return len(self._asked)

    def ask(self, reading: _Reading, number: int, tries: int = 1) -> None:
        """Have one task done; BadRequestError if the executor takes none."""
        try:
            sent = Sent(reading.source, reading.entry.name, reading.entry.code)
            future = self._executor.submit(tally_of, sent, number)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        except Exception as error:
            raise BadRequestError(f"the executor cannot submit tasks: {_words_of(error)}") from None
        if not isinstance(future, Future):
            raise BadRequestError(f"executor.submit() must return a Future, got {an_instance(future)}")
        self._asked[future] = reading, number, tries

    def finished(self) -> Iterator[_Found]:
        """Wait until some are done, and yield the weights of which all are."""
        while not (done := wait(self._asked, _STALLED_S, FIRST_COMPLETED).done):
            tasks = counted(len(self._asked), "task")
            _log.warning("a scan: none of the %s that the executor has was finished for a minute", tasks)
        for future in done:
            reading, number, tries = self._asked.pop(future)
            try:
                tally = future.result()
                if not isinstance(tally, Tally):
                    raise TypeError(f"its worker brought {an_instance(tally)}, and no Tally")
                reading.tallies[number] = tally
            except TensornpError as error:
                reading.why = str(error)
            except Exception as error:
                is_dead = _is_death(error)
                if is_dead and tries < _MAX_TRIES:
                    self.ask(reading, number, tries + 1)
                    continue
                reading.why = f"its worker died: {_words_of(error)}" if is_dead else _why_failed(error)
            reading.num_done += 1
            self._told.add(reading.entry.nbytes / reading.num_tasks)
            if reading.num_done == reading.num_tasks:
                reading.source.give_back()
                yield reading.entry, reading.outcome()

    def cancel(self) -> None:
        """Take back what has not begun."""
        for future in self._asked:
            future.cancel()


def _is_death(error: Exception) -> bool:
    """Return whether an error tells that a worker has died, and not that its task has failed."""
    is_told = isinstance(error, BrokenExecutor | CancelledError | OSError | EOFError)
    return is_told or any(cls.__name__ in _DEATHS for cls in type(error).__mro__)


def _words_of(error: Exception) -> str:
    """Return what an error says; some say nothing but their class."""
    return str(error) or type(error).__name__


def _why_failed(error: Exception) -> str:
    """Return why a task has failed; ipyparallel's errors tell the class of that of the engine by a name."""
    name, said = getattr(error, "ename", "") or type(error).__name__, _words_of(error)
    return f"its worker lacks a library ({said}); install tensornp there" if name == "ModuleNotFoundError" else said


class Sent(NamedTuple):
    """A weight as an executor gets it: where its values lie, and by what it is spoken of."""

    source: StoredSource
    name: str
    code: str


def tally_of(sent: Sent, number: int) -> Tally:
    """Carry one task out; what an executor calls, where the same file can be read."""
    return sent.source.tally(Called(sent.name, sent.code), number)


_log = logging.getLogger("tensornp")
