"""A survey of all tensors and arrays of a namespace, grouped by the memory that they share, each byte counted once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import stopped_text
from tensornp.core.memory.footprint import spans_of
from tensornp.core.memory.storages import Found, Group, Holding, grouped
from tensornp.core.namespace.members import in_dict
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
    results : dict
        By the identity of each tensor and array, how the results of cells that reach it are called: "Out[3]", "_".
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        tracebacks: Mapping[str, Any],
        max_seconds: float,
        also: Mapping[int, list[str]] | None = None,
    ) -> None:
        """Search each for `max_seconds`; `also` gives other names of IPython's own for a result: ``_``, by identity."""
        self._keys: dict[int, Path] = {}
        self._history = history_name(namespace)
        self.results: dict[int, dict[str, None]] = defaultdict(dict)
        found: list[Found] = []
        with modes.outside_modes():
            named = search(namespace, max_seconds, self._collect(found, "name"))
            # A magic that has called what failed has the whole namespace among its locals.
            behind = search(tracebacks, max_seconds, self._collect(found, "traceback"), besides=[namespace])
            is_complete = self._search_results(namespace, max_seconds, also or {})
        self.has_all_names = named.is_complete and not named.left_out
        is_complete = is_complete and named.is_complete and behind.is_complete
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

    def _search_results(self, namespace: Mapping[str, Any], max_seconds: float, also: Mapping[int, list[str]]) -> bool:
        """Search each result of a cell by itself, since a name may reach what it holds; return whether all were."""
        entries: dict[int, tuple[Any, list[str]]] = {}
        for step, result, _ in in_dict(namespace["_oh"]) if self._history else ():
            entries.setdefault(id(result), (result, []))[1].append(expression_of(((None, self._history), step)))
        deadline, is_complete = time.thread_time() + max_seconds, True
        for result, names in entries.values():
            known_as = dict.fromkeys([*names, *also.get(id(result), [])])

            def visit(obj: Any, kind: Kind, path: Path, known_as: dict[str, None] = known_as) -> None:
                self.results[id(obj)].update(known_as)

            searched = search({names[0]: result}, deadline - time.thread_time(), visit, besides=[namespace])
            is_complete = is_complete and searched.is_complete
        return is_complete

    def name(self, found: Found) -> str:
        """Return how a user reaches it."""
        return expression_of(found.path, self._keys)

    def unnamed(self) -> list[Group]:
        """Return the groups that no name of the user's reaches, as far as the names were searched."""
        return [group for group in self.groups if group.nbytes and all(f.holding != "name" for f in group.found)]
