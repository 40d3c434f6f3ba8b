"""`ranks`: all ranks of a job in one card, through a client that asks each by itself."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError
from tensornp.processes.asking import Asker
from tensornp.processes.merged import RankStats, RankWeights, stats_on

_MAX_TIMEOUT_S = 10**6
_NODES = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)


class Ranks:
    """All ranks of a job, as `ranks` gives them."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

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
        return RankWeights(self._asker, _checked(expression))

    def card(self, expression: str) -> RankStats:
        """Return the statistics of one tensor on all ranks; each reads its own part.

        Errors as of `weights`.
        """
        return stats_on(self._asker, _checked(expression), expression.strip())


def ranks(client: Any, timeout: float = 5) -> Ranks:
    """Connect to all ranks of a job, for ``.weights("model")`` and ``.card("model.fc.weight")``.

    No collective is started. The card names each process that does not answer in time, and comes without it.

    Parameters
    ----------
    client : ipyparallel.Client or a view of it, or an object with `ids` and `submit`
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
    Names are looked up in the main script of a process and in its IPython, which need the same version of tensornp.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= _MAX_TIMEOUT_S:
        raise BadRequestError(f"timeout must be a number of seconds, got {quoted(timeout)}")
    return Ranks(Asker(client, timeout))


def _checked(expression: Any) -> str:
    """Return an expression that runs nothing; BadRequestError for another."""
    with suppress(AttributeError, TypeError, SyntaxError, ValueError, MemoryError, RecursionError):
        if all(isinstance(one, _NODES) for one in ast.walk(ast.parse(expression.strip(), mode="eval").body)):
            return str(expression.strip())
    raise BadRequestError(
        "expression must consist of names, attributes and constant indices, as in model.layers[0].weight, "
        f"got {quoted(expression)}"
    )
