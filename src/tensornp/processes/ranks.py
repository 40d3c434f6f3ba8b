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
        name = _checked(expression)
        return stats_on(self._ask, name, name)

    def _ask(self, *question: Any) -> Answers:
        now = list(self._client.ids)
        late = {id for id, future in self._open.items() if not future.done()}
        asked = [id for id in now if id not in late]
        for id in asked:
            self._open[id] = done = Future[Any]()
            try:
                self._submit(id, answer, tensornp.__version__, *question).add_done_callback(done.set_result)
            except Exception as error:
                done.set_exception(error)
        wait([self._open[id] for id in asked], self._timeout)
        found: dict[Any, tuple[Any, Any]] = {}
        silent, num_ranks = {}, len(self._open)
        for id, future in self._open.items():
            rank, num, reason, result = None, 0, "", None
            if id not in now:
                reason = "has died, or was stopped"
            elif id in late:
                reason = "has not answered an earlier question"
            elif not future.done():
                reason = f"did not answer within {format_number(self._timeout)} s: it is stopped, or busy"
            else:
                rank, num, reason, result = _reply_of(future)
            num_ranks = max(num_ranks, num)
            self._ranks[id] = rank = self._ranks.get(id) if rank is None else rank
            if reason:
                name = f"engine {cut(str(id), MAX_INSIDE)}" if rank is None else f"rank {rank}"
                silent[id] = f"{name} {cut(reason, MAX_TOLD)}"
            else:
                found[id if rank is None else rank] = id, result
        order = sorted(found) if all(type(rank) is int for rank in found) else found
        results = {rank: found[rank][1] for rank in order}
        return Answers(num_ranks, results, tuple(found[rank][0] for rank in order), silent)


def _reply_of(future: Future[Any]) -> tuple[Any, int, str, Any]:
    """Return rank, number of ranks, reason for no result, and result of an answer."""
    try:
        version, rank, num_ranks, reason, result = future.result().result()
        if version == tensornp.__version__:
            return rank, num_ranks, reason, result
        reason = f"has tensornp {cut(str(version), 20)}: the same as here, {tensornp.__version__}, is needed"
    except (Exception, SystemExit, CancelledError) as error:
        # The other process raised it, whatever its class.
        name = str(getattr(error, "ename", "") or type(error).__name__)
        text = str(getattr(error, "evalue", "") or error)
        reason = f"raised {name}{f': {text}' if text else ''}"
    return None, 0, reason, None


def ranks(client: Any, timeout: float = 5) -> Ranks:
    """Connect to all ranks of a job, for ``.weights("model")`` and ``.card("model.fc.weight")``.

    No collective is started. The card names each process that does not answer in time, and comes without it. Names are
    looked up in the main script of a process, and in its IPython. A process needs the same version of tensornp; its
    answers are plain tuples and bytes.

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
