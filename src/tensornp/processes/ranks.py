"""`ranks`: all ranks of a job in one card, through a client that asks each by itself."""

from __future__ import annotations

import ast
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

import tensornp
from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.text import format_number, quoted
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import MAX_INSIDE, MAX_TOLD, cut
from tensornp.processes.answering import answer
from tensornp.processes.merged import Answers, RankStats, RankWeights, stats_on

_MAX_TIMEOUT_S = 10**6
_NODES = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)


class Ranks:
    """All ranks of a job, as `ranks` gives them."""

    def __init__(self, client: Any, submit: Callable[..., Any], timeout: float) -> None:
        self._client, self._submit, self._timeout = client, submit, timeout
        self._ranks: dict[Any, int | None] = {}
        self._open: dict[Any, Future[Any]] = {}

    def weights(self, expression: str) -> RankWeights:
        """Return the weights of a model, an optimizer or a dictionary on each rank.

        No value is read.

        Parameters
        ----------
        expression : str
            Names, attributes and constant indices, as they are typed there: ``model``, ``trainer.model``, ``jobs[0]``.

        Raises
        ------
        BadRequestError
            If something would have to be run for it.
        """
        return RankWeights(self._ask, _checked(expression))

    def card(self, expression: str) -> RankStats:
        """Return the statistics of one tensor on all ranks; each reads its own part.

        Errors as of `weights`.
        """
        return stats_on(self._ask, _checked(expression), expression.strip())

    def _ask(self, *question: Any) -> Answers:
        now = list(self._client.ids)
        why: dict[Any, str] = {}
        for id in dict.fromkeys((*self._open, *now)):
            if id not in now:
                why[id] = "has died, or was stopped"
            elif id in self._open and not self._open[id].done():
                why[id] = "has not answered an earlier question"
            else:
                self._open[id] = done = Future[Any]()
                try:
                    self._submit(id, answer, tensornp.__version__, *question).add_done_callback(done.set_result)
                except Exception as error:
                    done.set_exception(error)
        wait([future for id, future in self._open.items() if id not in why], self._timeout)
        late = f"did not answer within {format_number(self._timeout)} s: it is stopped, or busy"
        found: dict[Any, tuple[Any, Any]] = {}
        every = Answers(len(self._open))
        for id, future in self._open.items():
            is_there = id not in why and future.done()
            rank, num, reason, result = _reply_of(future) if is_there else (None, 0, why.get(id, late), None)
            self._ranks[id] = rank = self._ranks.get(id) if rank is None else rank
            every.num_ranks = max(every.num_ranks, num)
            if reason:
                name = f"engine {cut(str(id), MAX_INSIDE)}" if rank is None else f"rank {rank}"
                every.silent[id] = f"{name} {reason}"
            else:
                found[id if rank is None else rank] = id, result
        order = sorted(found) if all(type(rank) is int for rank in found) else found
        every.found = {rank: found[rank][1] for rank in order}
        every.answered = tuple(found[rank][0] for rank in order)
        return every


def _reply_of(future: Future[Any]) -> tuple[Any, int, str, Any]:
    """Return rank, number of ranks, reason for no result, and result of an answer."""
    try:
        version, rank, num_ranks, reason, result = future.result().result()
    except (Exception, SystemExit, CancelledError) as error:
        # The other process raised it, whatever its class.
        name = str(getattr(error, "ename", "") or type(error).__name__)
        text = str(getattr(error, "evalue", "") or error)
        reason = f"raised {name}{f': {text}' if text else ''}"
    else:
        if version == tensornp.__version__:
            return rank, num_ranks, cut(reason, MAX_TOLD), result
        reason = f"has tensornp {cut(str(version), 20)}: the same as here, {tensornp.__version__}, is needed"
    return None, 0, cut(reason, MAX_TOLD), None


def ranks(client: Any, timeout: float = 5) -> Ranks:
    """Connect to all ranks of a job, for ``.weights("model")`` and ``.card("model.fc.weight")``.

    No collective is started. The card names each process that does not answer in time, and comes without it.

    Parameters
    ----------
    client : ipyparallel.Client, or an object with `ids` and `submit`
        ``submit(id, function, *args)`` has one of the processes `ids` call a function that it imports by its name, and
        returns a `concurrent.futures.Future` at once.
    timeout : float
        Seconds that processes have for a question.

    Returns
    -------
    Ranks
        A process has its number of `torch.distributed`, and without a group its id.

    Raises
    ------
    BadRequestError
        If `client` reaches no processes, or `timeout` is no number of seconds.

    Notes
    -----
    Names are looked up in the main script of a process, and in its IPython. A process needs the same version of
    tensornp; its answers are plain tuples and bytes.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= _MAX_TIMEOUT_S:
        raise BadRequestError(f"timeout must be a number of seconds, got {quoted(timeout)}")
    if hasattr(client, "ids") and any(base.__module__.startswith("ipyparallel.") for base in type(client).__mro__):
        # A view of one engine has no other to wait for.
        return Ranks(client, lambda id, function, *args: client[id].apply_async(function, *args), timeout)
    if isinstance(client, type) or not hasattr(client, "ids") or not callable(getattr(client, "submit", None)):
        raise BadRequestError(
            "client must be a client of ipyparallel, or an object with ids and "
            f"submit(id, function, *args), got {an_instance(client)}"
        )
    return Ranks(client, client.submit, timeout)


def _checked(expression: Any) -> str:
    """Return an expression that runs nothing; BadRequestError for another."""
    with suppress(AttributeError, TypeError, SyntaxError, ValueError, MemoryError, RecursionError):
        if all(isinstance(one, _NODES) for one in ast.walk(ast.parse(expression.strip(), mode="eval").body)):
            return str(expression.strip())
    raise BadRequestError(
        "expression must consist of names, attributes and constant indices, as in model.layers[0].weight, "
        f"got {quoted(expression)}"
    )
