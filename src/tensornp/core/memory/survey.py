"""A survey of all tensors and arrays of a namespace, grouped by the memory that they share, each byte counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import stopped_text
from tensornp.core.memory.footprint import spans_of
from tensornp.core.memory.storages import Found, Group, Holding, grouped
from tensornp.core.namespace.search import Search
from tensornp.core.tensor.paths import Path, expression_of, root_of


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
        search = Search(namespace, max_seconds)
        found = list(self._collect(search, "name"))
        # A magic that has called what failed has the whole namespace among its locals.
        behind = Search(tracebacks, max_seconds, besides=namespace)
        found += self._collect(behind, "traceback")
        self.has_all_names = search.is_complete and not search.unguarded.left_out
        is_complete = search.is_complete and behind.is_complete
        stopped = [] if is_complete else [stopped_text(search.num_names + behind.num_names)]
        stopped += [NOT_LOOKED_AT] if search.unguarded.left_out or behind.unguarded.left_out else []
        self.stopped = "; ".join(stopped)
        self.groups = grouped(found)

    def _collect(self, search: Search, holding: Holding) -> Iterable[Found]:
        with modes.undisturbed():
            for obj, kind, path in search:
                if kind == "parameter":
                    self._keys.setdefault(id(obj), path)
                try:
                    spans = tuple(spans_of(obj))
                except Exception:
                    # Its row says what little is known.
                    spans = ()
                is_history = holding == "name" and root_of(path) == "Out"
                yield Found(obj, kind, path, "history" if is_history else holding, spans)

    def name(self, found: Found) -> str:
        """Return how a user reaches it."""
        return expression_of(found.path, self._keys)

    def unnamed(self) -> list[Group]:
        """Return the groups that no name of the user's reaches, as far as the names were searched."""
        return [group for group in self.groups if group.nbytes and all(f.holding != "name" for f in group.found)]
