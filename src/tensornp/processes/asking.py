"""Ask each process by itself, and say in a sentence why one has not answered in time."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

import tensornp
from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.text import counted, format_number, number_ranges
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import MAX_INSIDE, MAX_TOLD, cut
from tensornp.processes.answering import Row, answer

_MAX_NAMED = 12
"""Runs of ranks that a sentence names."""
_DEAD = "has died, or was stopped"
_DEATHS = ("EngineError", "KilledWorker", "BrokenProcessPool")
_SAME = f"the same as here, {tensornp.__version__}, is needed"


class OfIpyparallel:
    """The engines of a client of ipyparallel, or those of a view."""

    def __init__(self, client: Any) -> None:
        self._client, self._targets = getattr(client, "client", client), getattr(client, "targets", None)

    @property
    def ids(self) -> list[int]:
        """The engines that are registered, or are those of the view."""
        if isinstance(self._targets, int):
            return [self._targets]
        return list(self._targets if isinstance(self._targets, list | tuple) else self._client.ids)

    def submit(self, id: int, function: Callable[..., Any], *args: Any) -> Any:
        """Have one engine call a function: a view of its own has no other to wait for."""
        return self._client[id].apply_async(function, *args)


class Asker:
    """Asks the processes of a client; remembers their ranks, and questions that are not answered yet."""

    def __init__(self, client: Any, timeout: float) -> None:
        if any(base.__module__.partition(".")[0] == "ipyparallel" for base in type(client).__mro__):
            client = OfIpyparallel(client)
        elif isinstance(client, type) or not hasattr(client, "ids") or not callable(getattr(client, "submit", None)):
            raise BadRequestError(
                "client must be a client or a view of ipyparallel, or an object with ids and "
                f"submit(id, function, *args), got {an_instance(client)}"
            )
        self._transport, self._timeout = client, timeout
        self._ranks: dict[Any, int | None] = {}
        self._open: dict[Any, Future[Any]] = {}

    def ask(self, *question: Any) -> Answers:
        """Ask all processes one question, and return the answers that came in time."""
        now, asked, why = list(self._transport.ids), dict[Any, Future[Any]](), dict[Any, str]()
        for id in dict.fromkeys((*self._open, *now)):
            if id not in now:
                why[id] = _DEAD
            elif id in self._open and not self._open[id].done():
                why[id] = "has not answered an earlier question"
            else:
                asked[id] = self._submitted(id, question)
        self._open |= asked
        wait(asked.values(), self._timeout)
        late = f"did not answer within {format_number(self._timeout)} s: it is stopped, or busy"
        found: dict[Any, tuple[Any, Any]] = {}
        every = Answers(len(self._open))
        for id, future in self._open.items():
            reply = (None, 0, why.get(id, late), None) if id in why or not future.done() else _reply_of(future)
            rank, num, reason, result = reply
            self._ranks[id] = rank = self._ranks.get(id) if rank is None else rank
            every.num_ranks = max(every.num_ranks, num)
            if reason:
                name = f"engine {cut(str(id), MAX_INSIDE)}" if rank is None else f"rank {rank}"
                every.silent[id] = f"{name} {reason}"
            else:
                found[id if rank is None else rank] = id, result
        for rank in sorted(found) if all(type(rank) is int for rank in found) else found:
            id, every.found[rank] = found[rank]
            every.answered += (id,)
        return every

    def _submitted(self, id: Any, question: tuple[Any, ...]) -> Future[Any]:
        """Submit a question, and return a Future of the transport's own one."""
        done = Future[Any]()
        try:
            self._transport.submit(id, answer, tensornp.__version__, *question).add_done_callback(done.set_result)
        except Exception as error:
            done.set_exception(error)
        return done


def _reply_of(future: Future[Any]) -> tuple[Any, int, str, Any]:
    """Return rank, number of ranks, reason for no result, and result of an answer."""
    try:
        version, rank, num_ranks, reason, result = future.result().result()
    except (Exception, SystemExit, CancelledError) as error:
        # The other process raised it, whatever its class.
        name = str(getattr(error, "ename", "") or type(error).__name__)
        text = str(getattr(error, "evalue", "") or error)
        reason = f"raised {name}{f': {text}' if text else ''}"
        if name in ("ImportError", "ModuleNotFoundError", "AttributeError") and "tensornp" in text:
            reason = f"has no tensornp, or another: {_SAME}"
        elif name in _DEATHS or "No such engine" in text:
            reason = _DEAD
    else:
        if version == tensornp.__version__:
            return rank, num_ranks, cut(reason, MAX_TOLD), result
        reason = f"has tensornp {cut(str(version), 20)}: {_SAME}"
    return None, 0, cut(reason, MAX_TOLD), None


@dataclass
class Answers:
    """The answers to one question by rank, and the reasons of silent processes by id."""

    num_ranks: int = 0
    found: dict[Any, Any] = field(default_factory=dict)
    answered: tuple[Any, ...] = ()
    silent: dict[Any, str] = field(default_factory=dict)

    @property
    def count_text(self) -> str:
        """How many have answered: "32 ranks", "31 of 32 ranks"."""
        num = len(self.found)
        return counted(num, "rank") if num == self.num_ranks else f"{num:,} of {counted(self.num_ranks, 'rank')}"

    def rows(self) -> Iterator[tuple[Any, Row]]:
        """Yield each rank with each of its weights."""
        return ((rank, row) for rank, rows in self.found.items() for row in rows)


def ranks_text(ranks: Iterable[Any]) -> str:
    """Return ranks in words: "rank 7", "ranks 0..3, 9"."""
    every = list(ranks)
    is_numbered = all(type(one) is int for one in every)
    names = list(number_ranges(sorted(every))) if is_numbered else [cut(str(one), MAX_INSIDE) for one in every]
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return f"rank{'s' * (len(every) != 1)} {', '.join(names[:_MAX_NAMED])}{more}"
