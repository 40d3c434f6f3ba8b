"""Ask each process by itself, and say in a sentence why one has not answered in time."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

import tensornp
from tensornp.core.lowlevel.attributes import an_instance, error_text
from tensornp.core.lowlevel.text import counted, format_number, number_ranges
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import MAX_INSIDE, MAX_TOLD, cut
from tensornp.processes.answering import answer

_MAX_SAID = 12
"""Runs of ranks that a sentence names."""


class OfIpyparallel:
    """The engines of a client of ipyparallel, or those of a view."""

    def __init__(self, client: Any) -> None:
        self._client = getattr(client, "client", client)
        targets = getattr(client, "targets", None)
        self._targets = [targets] if isinstance(targets, int) else targets

    @property
    def ids(self) -> list[int]:
        """The engines that are registered, or are those of the view."""
        return list(self._targets if isinstance(self._targets, list | tuple) else self._client.ids)

    def submit(self, id: int, function: Callable[..., Any], *args: Any) -> Any:
        """Have one engine call a function: a view of its own has no other to wait for."""
        return self._client[id].apply_async(function, *args)


def transport_of(client: Any) -> Any:
    """Return the transport to the processes of `client`; BadRequestError if it reaches none."""
    if any(base.__module__.partition(".")[0] == "ipyparallel" for base in type(client).__mro__):
        return OfIpyparallel(client)
    try:
        is_transport = client.ids is not None and callable(client.submit) and not isinstance(client, type)
    except Exception:
        # A class of the user's may raise anything.
        is_transport = False
    if not is_transport:
        raise BadRequestError(
            f"client must be a client or a view of ipyparallel, or an object with ids and submit(id, function, *args), "
            f"got {an_instance(client)}"
        )
    return client


class Asker:
    """Asks processes by a transport; remembers their ranks, and who has not answered yet."""

    def __init__(self, transport: Any, timeout: float) -> None:
        self._transport, self.timeout = transport, timeout
        self.ranks: dict[Any, int] = {}
        self._late: dict[Any, Any] = {}
        self._known: dict[Any, None] = {}
        self.ids()

    def ids(self) -> list[Any]:
        """Return the processes that there are."""
        try:
            now = list(self._transport.ids)
        except Exception as error:
            raise BadRequestError(f"the client does not tell its ids: {cut(error_text(error), MAX_TOLD)}") from None
        self._known |= dict.fromkeys(now)
        return now

    def ask(self, *question: Any, ids: Iterable[Any] | None = None) -> Answers:
        """Ask all processes, or some, one question, and return what came in time."""
        now = self.ids()
        replies: dict[Any, Any] = {}
        come: SimpleQueue[Any] = SimpleQueue()
        until, open_ = time.monotonic() + self.timeout, {}
        for id in dict.fromkeys(self._known if ids is None else ids):
            if id not in now:
                replies[id] = "has died, or was stopped"
            elif id in self._late and not self._late[id].done():
                replies[id] = "has not answered an earlier question, and is not asked again before"
            else:
                replies[id] = f"did not answer within {format_number(self.timeout)} s: it is stopped, or busy"
                open_[id] = self._submitted(id, question, come)
        while open_ and (left := until - time.monotonic()) > 0:
            try:
                id = come.get(timeout=left)
            except Empty:
                break
            replies[id] = _reply_of(open_.pop(id))
        self._late = {id: future for id, future in (self._late | open_).items() if not future.done()}
        return Answers(self.ranks, replies)

    def _submitted(self, id: Any, question: tuple[Any, ...], come: SimpleQueue[Any]) -> Any:
        try:
            future = self._transport.submit(id, answer, tensornp.__version__, *question)
            future.add_done_callback(lambda *_: come.put(id))
        except Exception as error:
            future = Future[Any]()
            future.set_exception(error)
            come.put(id)
        return future


def _reply_of(future: Any) -> Any:
    """Return the answer of a process, or a text with the reason for none."""
    cure = f"the same as here, {tensornp.__version__}, is needed"
    try:
        version, rank, num_ranks, said, found = future.result()
        if version != tensornp.__version__:
            return f"has tensornp {cut(str(version), 20)}: {cure}"
        return (rank, num_ranks, cut(said, MAX_TOLD), found)
    except (ValueError, TypeError) as error:
        if future.exception() is None:
            return "gave an answer that is none of tensornp's"
        return _why_raised(error, cure)
    except (Exception, SystemExit, CancelledError) as error:
        # The other process raised it, whatever its class.
        return _why_raised(error, cure)


def _why_raised(error: BaseException, cure: str) -> str:
    """Return why a process has not answered, by the error of its transport."""
    name = str(getattr(error, "ename", "") or type(error).__name__)
    said = cut(str(getattr(error, "evalue", "") or error), MAX_TOLD)
    if name in ("ImportError", "ModuleNotFoundError", "AttributeError") and "tensornp" in said:
        return f"has no tensornp, or another: {cure}"
    if name in ("EngineError", "KilledWorker", "BrokenProcessPool") or "No such engine" in said:
        return "has died, or was stopped"
    return f"raised {name}{f': {said}' if said else ''}"


class Answers:
    """The answers to one question by rank, and who has not answered.

    Attributes
    ----------
    found : dict
        The answers by rank, in their order; a process without a group has its id for one.
    answered : tuple
        The ids of those that have answered, in the same order.
    silent : dict
        By id, why a process has not, in a sentence.
    num_ranks : int
        How many there are in all, asked or not.
    """

    def __init__(self, known: dict[Any, int], replies: Mapping[Any, Any]) -> None:
        ids: dict[Any, Any] = {}
        found: dict[Any, Any] = {}
        self._reasons: dict[tuple[str, str], list[Any]] = {}
        self.silent: dict[Any, str] = {}
        num_ranks = 0
        for id, reply in replies.items():
            own, num, said, answer = reply if type(reply) is tuple else (known.get(id), 0, reply, None)
            num_ranks = max(num_ranks, num)
            rank = id if own is None else own
            if own is not None:
                known[id] = own
            if not said and rank in ids:
                said = f"says that it is rank {rank}, as engine {ids[rank]} does, and is left out"
                own, rank = None, id
            if said:
                noun = "engine" if own is None else "rank"
                self.silent[id] = f"{ranks_text([rank], noun)} {said}"
                self._reasons.setdefault((noun, said), []).append(rank)
            else:
                ids[rank], found[rank] = id, answer
        order = sorted(found) if all(type(rank) is int for rank in found) else list(found)
        self.found = {rank: found[rank] for rank in order}
        self.answered = tuple(ids[rank] for rank in order)
        self.num_ranks = max(len(replies), num_ranks)
        told_before = [known.get(id) for id in self.silent]
        missing = set(range(num_ranks)).difference(found, told_before)
        # A process that has never told its rank may be one of them.
        self._missing = sorted(missing) if len(missing) > told_before.count(None) else []

    def id_of(self, rank: Any) -> Any:
        """Return the process of a rank that has answered."""
        return self.answered[list(self.found).index(rank)]

    @property
    def told(self) -> str:
        """Return how many have answered: "32 ranks", "31 of 32 ranks"."""
        num = len(self.found)
        return counted(num, "rank") if num == self.num_ranks else f"{num:,} of {counted(self.num_ranks, 'rank')}"

    @property
    def silent_told(self) -> list[str]:
        """Return why processes have not answered, in one sentence for all that have the same reason."""
        every = [f"{ranks_text(some, noun)}: {said}" for (noun, said), some in self._reasons.items()]
        return every + ([f"nobody here is {ranks_text(self._missing)}"] if self._missing else [])


def ranks_text(ranks: Iterable[Any], noun: str = "rank") -> str:
    """Return ranks in words: "rank 7", "ranks 0..3, 9"."""
    every = list(ranks)
    is_numbered = all(type(one) is int for one in every)
    said = list(number_ranges(sorted(every))) if is_numbered else [cut(str(one), MAX_INSIDE) for one in every]
    more = f" and {len(said) - _MAX_SAID:,} more" if len(said) > _MAX_SAID else ""
    return f"{noun}{'s' * (len(every) != 1)} {', '.join(said[:_MAX_SAID])}{more}"
