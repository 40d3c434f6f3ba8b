"""Make a static table sortable and searchable while its kernel lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from tensornp.errors import BadRequestError
from tensornp.models.names.search import none_fits
from tensornp.models.outline.columns import searched
from tensornp.widget.page import NONSENSE, Answer, Request
from tensornp.widget.part import LivePart, module, stylesheet


class LiveTable(LivePart):
    """The live part of a table, which sorts and filters all rows."""

    _esm = module("table")
    _css = stylesheet("table")

    rows = traitlets.Unicode(help="all rows as HTML, with a `data-n` in the cells of numbers").tag(sync=True)
    num_left_out = traitlets.Int(help="rows that are not among these").tag(sync=True)

    def __init__(self, rows: str, names: Sequence[str], **traits: Any) -> None:
        self._names = list(names)
        super().__init__({"search": self._search}, rows=rows, **traits)

    def _found(self, text: str) -> list[int]:
        return searched(text, self._names)

    def _search(self, request: Request) -> Answer:
        text = request.get("text")
        if not isinstance(text, str):
            raise BadRequestError(NONSENSE)
        found = self._found(text)
        return {"type": "found", "found": found, "text": "" if found else none_fits(text, self._names)}
