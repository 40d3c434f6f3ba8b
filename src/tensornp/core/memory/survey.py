"""A survey of all tensors and arrays of a namespace, grouped by the memory that they share, each byte counted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import stopped_text
from tensornp.core.memory.footprint import spans_of
from tensornp.core.memory.storages import Found, Group, Holding, grouped
from tensornp.core.namespace.search import Visit, history_name, search
from tensornp.core.tensor.paths import Kind, Path, expression_of, root_of


class Survey:
    """What a search has found, grouped by memory; `unnamed` tells what nobody names.

    It holds all that it has found, so that nothing goes while it is looked at, and must not be kept.

    Attributes
    ----------
    stopped : str
        "search stopped at 12,345 names", or empty.
    has_all_names : bool
        Whether the namespace was searched to its end, without which nothing can be known to have no name.
    """

    def __init__(self, namespace: Mapping[str, Any], tracebacks: Mapping[str, Any], max_seconds: float) -> None:
        self._keys: dict[int, Path] = {}
        self._history = history_name(namespace)
        found: list[Found] = []
        with modes.undisturbed():
            named = search(namespace, max_seconds, self._collect(found, "name"))
            # A magic that has called what failed has the whole namespace among its locals.
            behind = search(tracebacks, max_seconds, self._collect(found, "traceback"), besides=namespace)
        self.has_all_names = named.is_complete and not named.left_out
        is_complete = named.is_complete and behind.is_complete
        stopped = [] if is_complete else [stopped_text(named.num_names + behind.num_names)]
        stopped += [NOT_LOOKED_AT] if named.left_out or behind.left_out else []
        self.stopped = "; ".join(stopped)
        self.groups = grouped(found)

    def _collect(self, found: list[Found], holding: Holding) -> Visit:
        def visit(obj: Any, kind: Kind, path: Path) -> None:
            if kind == "parameter":
                self._keys.setdefault(id(obj), path)
            try:
                spans = tuple(spans_of(obj))
            except Exception:
                # Its row says what little is known.
                spans = ()
            is_history = holding == "name" and root_of(path) == self._history
            found.append(Found(obj, kind, path, "history" if is_history else holding, spans))

        return visit

    def name(self, found: Found) -> str:
        """Return how a user reaches it."""
        return expression_of(found.path, self._keys)

    def unnamed(self) -> list[Group]:
        """Return the groups that no name of the user's reaches, as far as the names were searched."""
        return [group for group in self.groups if group.nbytes and all(f.holding != "name" for f in group.found)]
