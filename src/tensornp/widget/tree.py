"""Answer the requests of a page for the rows of a tree or of a list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tensornp.errors import BadRequestError
from tensornp.models.names.search import none_fits
from tensornp.models.outline.columns import Asked
from tensornp.render.layout.tree import TreeColumn, TreeRow, head_html, note_html, row_html
from tensornp.widget.page import NONSENSE, integer_of

MAX_ROWS, MAX_FOUND = 500, 40
"""Rows of a list or below one branch, and those of a search, which are sent at each letter."""
_MAX_OPEN = 10_000
_NAME_WIDTH = 48


class Tree(Protocol):
    """The rows of a page: a folded tree, or a list if it is searched or sorted.

    `sortable` names columns. `opened` are the branches that are open at first, and `num_branches` is above all their
    ids. The items below a branch (-1 for the top) and those of a list become rows; `path` leads to an item that opens.
    `names` are searched, and `text` tells of what is listed.
    """

    sortable: Collection[str] = ()
    opened: frozenset[int]
    num_branches: int
    names: Sequence[str]

    def columns(self, asked: Asked) -> Sequence[TreeColumn]: ...
    def below(self, parent: int) -> Sequence[Any]: ...
    def listed(self, asked: Asked) -> Sequence[Any]: ...
    def id_of(self, item: Any) -> int: ...
    def path(self, number: int) -> frozenset[int]: ...
    def row(self, item: Any, parent: int, opened: frozenset[int], asked: Asked) -> TreeRow: ...
    def facts(self, listed: Sequence[Any] | None) -> dict[str, Any]: ...

    def rows(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rows below `parent`, or all rows with `opened` branches open."""
        asked, parent = self.asked(request), request.get("parent")
        columns = self.columns(asked)
        if parent is not None:
            if not 0 <= integer_of(parent) < self.num_branches:
                raise BadRequestError(NONSENSE)
            return {"type": "below", "html": self._html(self.below(parent), parent, asked, columns)}
        listed = self.listed(asked) if asked.is_list else None
        if listed is not None:
            html = self._html(listed, -1, asked, columns)
            html = html or note_html(none_fits(asked.search, self.names), 1, columns)
        else:
            reveal, opened = request.get("reveal"), self._opened(request)
            path = self.path(integer_of(reveal)) if reveal is not None else frozenset()
            html = self._html(self.below(-1), -1, asked, columns, opened | path, path)
        width = sum(column.width + 2 for column in columns[1:]) + _NAME_WIDTH
        return {
            "type": "rows", "html": html, "head": head_html(columns), "width": width, "isList": asked.is_list,
            **self.facts(listed),
        }  # fmt: skip

    def _html(
        self,
        items: Sequence[Any],
        parent: int,
        asked: Asked,
        columns: Sequence[TreeColumn],
        opened: frozenset[int] = frozenset(),
        path: frozenset[int] = frozenset(),
    ) -> str:
        """Return the rows of a list or below a branch, always with those on the path."""
        num = MAX_FOUND if asked.search else MAX_ROWS
        rest, parts, level = items[num:], [], 1
        for item in [*items[:num], *(one for one in (rest if path else ()) if self.id_of(one) in path)]:
            row = self.row(item, parent, opened, asked)
            parts.append(row_html(row, columns))
            level = row.level
            if row.is_open:
                parts.append(self._html(self.below(row.id), row.id, asked, columns, opened, path))
        if rest:
            parts.append(note_html(f"… {len(rest):,} more; search for them", level, columns))
        return "".join(parts)

    def _opened(self, request: Mapping[str, Any]) -> frozenset[int]:
        opened = request.get("opened")
        if opened is None:
            return self.opened
        if not isinstance(opened, list) or len(opened) > _MAX_OPEN:
            raise BadRequestError(NONSENSE)
        return frozenset(map(integer_of, opened))

    def asked(self, request: Mapping[str, Any]) -> Asked:
        search, sort = request.get("search", ""), request.get("sort", "")
        if not isinstance(search, str) or sort not in ("", *self.sortable):
            raise BadRequestError(NONSENSE)
        return Asked(search.strip(), sort, request.get("descending") is True)
