"""What makes the static table of all tensors sortable while a kernel is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

_STATIC = Path(__file__).parent / "static"


class TensorsTable(anywidget.AnyWidget):
    """The live part of a table: it docks into the static one that has the class `anchor`."""

    _esm = _STATIC / "table.js"
    _css = _STATIC / "table.css"

    anchor = traitlets.Unicode().tag(sync=True)
    table_html = traitlets.Unicode(help="the same table, where outputs are isolated from each other").tag(sync=True)
    answers = traitlets.Int(0, help="counts what the kernel has answered").tag(sync=True)

    def __init__(self, anchor: str, table_html: str) -> None:
        self.on_docked: Callable[[], None] = lambda: None
        super().__init__(anchor=anchor, table_html=table_html)
        self.on_msg(self._receive)

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        if isinstance(content, dict) and content.get("type") == "docks":
            self.on_docked()
            self.answers += 1

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take nothing from the browser, which may send anything."""

    def close(self) -> None:
        """Take the live part out of the page; the static table stays."""
        # Every DOM widget has a layout with a comm of its own, which would stay open for good.
        self.layout.close()
        super().close()
