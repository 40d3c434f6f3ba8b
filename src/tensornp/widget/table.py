"""What makes the static table of all tensors sortable while a kernel is there."""

from __future__ import annotations

from typing import Any

import traitlets

from tensornp.widget.dock import DockingWidget, module, stylesheet


class TensorsTable(DockingWidget):
    """The live part of the last table."""

    _esm = module("table")
    _css = stylesheet("table")

    table_html = traitlets.Unicode(help="the same table, where outputs are isolated from each other").tag(sync=True)

    rows: traitlets.List[Any] = traitlets.List(help="all rows, also those that the page does not show").tag(sync=True)
    num_left_out = traitlets.Int(help="rows that are not among these").tag(sync=True)

    def show(self, anchor: str, rows: list[Any], num_left_out: int, table_html: str = "") -> None:
        """Move to the table of class `anchor`, and filter and sort `rows` there."""
        with self.hold_sync():
            self.rows, self.num_left_out = rows, num_left_out
            self.table_html, self.anchor = table_html, anchor

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take nothing from the browser, which may send anything."""
