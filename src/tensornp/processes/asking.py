"""Asks each process by itself and takes what comes in time; of whoever does not answer, a sentence tells why."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import tensornp
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.text import format_number
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import MAX_TOLD, cut
from tensornp.processes.answering import answer
from tensornp.processes.facts import whole
from tensornp.processes.transport import Id

_CURE = f"the same as here, {tensornp.__version__}, is needed"
_MAX_RANKS = 2**20
_GARBAGE = "gave an answer that is none of tensornp's"


class Told(NamedTuple):
    """What a process has answered, or why there is nothing, and its number in its group, of how many; None without one.

    `said` goes on behind the name of the process; it is empty where there is an answer.
    """

    said: str
    found: Any = None
    rank: int | None = None
    num_ranks: int = 0


class Asker:
    """Reaches processes by a transport; it remembers which numbers they have, and who has not answered yet."""

    def __init__(self, transport: Any, timeout: float) -> None:
        self.transport, self.timeout = transport, timeout
        self.ranks: dict[Id, int | None] = {}
        self.late: dict[Id, tuple[Any, float]] = {}
        self._ids: dict[Id, None] = {}
        self.ids()

    def ids(self) -> tuple[list[Id], set[Id]]:
        """Return the processes that there are, with those that there once were, and the latter alone."""
        try:
            now = dict.fromkeys(self.transport.ids)
        except Exception as error:
            raise BadRequestError(f"the client does not tell its ids: {cut(error_text(error), MAX_TOLD)}") from None
        self._ids |= now
        return list(self._ids), self._ids.keys() - now.keys()


Question = tuple[Any, ...]
"""What is asked, and its details."""


class Asking:
    """Questions to processes, and what comes of them, in the order in which it comes; more may be asked meanwhile."""

    def __init__(self, asker: Asker) -> None:
        self._asker, self._begun = asker, time.monotonic()
        self._come: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._open: dict[int, tuple[Id, Question, Callable[[Any], Any]]] = {}
        self._numbers = count()
        self.ids, self._gone = asker.ids()
        self._asked_before = {id: since for id, (future, since) in asker.late.items() if not _is_done(future)}

    def ask_all(self, *question: Any, check: Callable[[Any], Any]) -> None:
        """Ask each process by itself."""
        for id in self.ids:
            self.ask(id, *question, check=check)

    def ask(self, id: Id, *question: Any, check: Callable[[Any], Any]) -> None:
        """Ask one process; `check` gives what its answer means, and raises where that is nothing."""
        number = next(self._numbers)
        self._open[number] = id, question, check
        if id in self._asked_before or id in self._gone or self._seconds_left() <= 0:
            self._come.put((number, None))
            return
        try:
            future = self._asker.transport.submit(id, answer, tensornp.__version__, *question)
            # Not every transport gives its future to what it calls.
            future.add_done_callback(lambda *_: self._come.put((number, future)))
        except Exception as error:
            future = Future[Any]()
            future.set_exception(error)
            self._come.put((number, future))
            return
        self._asker.late[id] = future, time.monotonic()

    def __iter__(self) -> Iterator[tuple[Id, Question, Told]]:
        """Yield each answer, or why there is none; at the end of the time, of all that have not come."""
        while self._open:
            try:
                number, future = self._come.get(timeout=max(self._seconds_left(), 0))
            except Empty:
                break
            if number in self._open:
                id, question, check = self._open.pop(number)
                if future is None:
                    yield id, question, Told(self._why_not_asked(id))
                    continue
                if self._asker.late.get(id, (None,))[0] is future:
                    del self._asker.late[id]
                yield id, question, self._outcome(id, future, check)
        for id, question, _ in [self._open.pop(number) for number in list(self._open)]:
            yield id, question, Told(self._why_late(id))

    def _seconds_left(self) -> float:
        return self._begun + self._asker.timeout - time.monotonic()

    def _outcome(self, id: Id, future: Any, check: Callable[[Any], Any]) -> Told:
        try:
            # Of whatever class, also SystemExit: it is the other process's.
            if (error := future.exception()) is not None:
                return Told(_why_raised(error))
            reply = future.result()
        except (Exception, CancelledError) as error:
            return Told(_why_raised(error))
        try:
            version, rank, num_ranks, said, found = reply
            if version != tensornp.__version__:
                return Told(f"has tensornp {cut(str(version), 20)}: {_CURE}")
            if whole(num_ranks) > _MAX_RANKS or (rank is not None and whole(rank) >= num_ranks):
                return Told(_GARBAGE)
            self._asker.ranks[id] = rank
            return Told(cut(said, MAX_TOLD), None if said else check(found), rank, num_ranks)
        except Exception:
            # Of whatever class: a process may answer anything, and a version is compared with whatever comes.
            return Told(_GARBAGE)

    def _why_not_asked(self, id: Id) -> str:
        if id in self._gone:
            return "has died, or was stopped"
        since = self._asked_before.get(id)
        if since is None:
            return f"was not asked: the {self._told_timeout()} were over"
        waited = format_number(round(time.monotonic() - since))
        return self._why_busy(id) or f"has not answered what it was asked {waited} s ago, and is not asked again before"

    def _why_late(self, id: Id) -> str:
        late = f"did not answer within {self._told_timeout()}: it is stopped, or does something else"
        return self._why_busy(id) or late

    def _why_busy(self, id: Id) -> str:
        try:
            seconds = round(self._asker.transport.running_for(id))
        except Exception:
            # Not every transport tells.
            return ""
        return f"is busy: running for {seconds:,} s what it was given before" if seconds > 0 else ""

    def _told_timeout(self) -> str:
        return f"{format_number(self._asker.timeout)} s"


def _is_done(future: Any) -> bool:
    try:
        return bool(future.done())
    except Exception:
        # What cannot tell is not waited for.
        return True


def _why_raised(error: BaseException) -> str:
    """Return why a process has not answered, by what its transport raises; ipyparallel's tell the class by a name."""
    name = str(getattr(error, "ename", "") or type(error).__name__)
    said = cut(str(getattr(error, "evalue", "") or error), MAX_TOLD)
    if name in ("ImportError", "ModuleNotFoundError", "AttributeError") and "tensornp" in said:
        what = "no" if name == "ModuleNotFoundError" and said.endswith("'tensornp'") else "another"
        return f"has {what} tensornp: {_CURE}"
    if name in ("EngineError", "KilledWorker", "BrokenProcessPool") or "No such engine" in said:
        return "has died, or was stopped"
    if name == "CancelledError":
        return "was not asked: somebody has cancelled it"
    return f"raised {name}{f': {said}' if said else ''}"
