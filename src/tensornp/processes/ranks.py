"""`ranks`: all ranks of a job in one card, through a client that asks each by itself."""

from __future__ import annotations

import ast
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError
from tensornp.processes.asking import Asker, transport_of
from tensornp.processes.merged import RankStats, RankWeights, stats_on

_MAX_TIMEOUT_S = 10**6
_NODES = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub, ast.Tuple,
)  # fmt: skip


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

    def __repr__(self) -> str:
        num = len(self._asker.ids())
        return f"<Ranks of {num:,} process{'es' * (num != 1)}>"


def ranks(client: Any, timeout: float = 5) -> Ranks:
    """Connect to all ranks of a job, for ``.weights("model")`` and ``.card("model.fc.weight")``.

    No collective is started. The card names each process that does not answer in time, and comes without it.

    Parameters
    ----------
    client : ipyparallel.Client or a view of it, or an object with `ids` and `submit`
        Another transport has the processes as ``ids``, and ``submit(id, function, *args)`` has one of them call a
        function, which it imports by its name, and returns a Future at once. Two processes behind pipes, for one::

            class Piped:
                def __init__(self, pipes):                     # multiprocessing.Pipe() of each process, by its id
                    self.pipes, self.pool = pipes, ThreadPoolExecutor(len(pipes))

                @property
                def ids(self):
                    return list(self.pipes)

                def submit(self, id, function, *args):
                    return self.pool.submit(self._call, self.pipes[id], function, args)

                def _call(self, pipe, function, args):
                    pipe.send((function, args))
                    return pipe.recv()

            def answer_forever(pipe):                          # in a thread of each process
                while True:
                    function, args = pipe.recv()
                    pipe.send(function(*args))

            tnp.ranks(Piped({0: pipe_of_0, 1: pipe_of_1})).weights("model")
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
    return Ranks(Asker(transport_of(client), timeout))


def _checked(expression: Any) -> str:
    """Return an expression that runs nothing; BadRequestError for another."""
    if not isinstance(expression, str):
        raise BadRequestError(f"expression must be a text, got {an_instance(expression)}; .weights('model')")
    text = expression.strip()
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
        is_known = all(isinstance(one, _NODES) for one in ast.walk(node))
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if is_known and isinstance(node, ast.Name):
            return text
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    raise BadRequestError(
        "expression must consist of names, attributes and constant indices, as in model.layers[0].weight, "
        f"got {quoted(expression)}"
    )
