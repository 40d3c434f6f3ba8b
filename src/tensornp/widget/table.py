"""Make a static table sortable and searchable while its kernel lives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import traitlets

from tensornp.errors import BadRequestError
from tensornp.widget.part import LivePart, module, stylesheet
from tensornp.widget.values import Answer, Handler, Request
from tensornp.widget.window_request import NONSENSE


class LiveTable(LivePart):
    """The live part of a table, which sorts and filters all rows."""

    _esm = module("table")
    _css = stylesheet("table")

    table_html = traitlets.Unicode(help="the same table, where outputs are isolated from each other").tag(sync=True)

    rows: traitlets.List[Any] = traitlets.List(help="all rows, as `TableRow.data` gives them").tag(sync=True)
    num_left_out = traitlets.Int(help="rows that are not among these").tag(sync=True)

    def __init__(self, handlers: Mapping[str, Handler] = MappingProxyType({}), **traits: Any) -> None:
        super().__init__({"search": self._search, **handlers}, **traits)

    def show(self, anchor: str, rows: list[Any], num_left_out: int, table_html: str = "") -> None:
        """Move to the table of class `anchor`, and filter and sort `rows` there."""
        with self.hold_sync():
            self.rows, self.num_left_out = rows, num_left_out
            self.table_html, self.anchor = table_html, anchor

    def _names(self) -> list[str]:
        """Return the searched text of each row."""
        return [str(row["cells"][0]).removeprefix("└ ") for row in self.rows]

    def _found(self, text: str) -> list[int]:
        """Return the numbers of the rows that are searched for."""
        from tensornp.models.outline.choose import searched

        return searched(text, self._names())

    def _search(self, request: Request) -> Answer:
        """Return the numbers of the rows that match a search."""
        from tensornp.models.names.search import is_expression, none_fits

        text = request.get("text")
        if not isinstance(text, str):
            raise BadRequestError(NONSENSE)
        names, found = self._names(), self._found(text)
        nothing = "" if found else "no name fits" if is_expression(text) else none_fits(text, names)
        return {"type": "found", "found": found, "text": nothing}
