"""The kernel's side of a live part that docks into a static card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

_STATIC = Path(__file__).parent / "static"


def module(name: str) -> str:
    """Return the source of a widget's ES module: what all that dock have in common, and its own."""
    return "".join((_STATIC / f"{part}.js").read_text(encoding="utf-8") for part in ("dock", name))


def stylesheet(name: str) -> str:
    """Return the source of a widget's style sheet."""
    return (_STATIC / f"{name}.css").read_text(encoding="utf-8")


class DockingWidget(anywidget.AnyWidget):
    """A widget that docks into the static card of class `anchor`; empty for one that stands alone."""

    anchor = traitlets.Unicode().tag(sync=True)
    answers = traitlets.Int(0, help="counts what the kernel has answered").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self.on_docked: Callable[[], None] = lambda: None
        super().__init__(**traits)
        self.on_msg(self._receive)

    def close(self) -> None:
        """Take the live part out of the page; the static card stays."""
        # Every DOM widget has a layout with a comm of its own, which would stay open for good.
        self.layout.close()
        super().close()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        """Take a message of the page, which may be anything."""
        if isinstance(content, dict) and content.get("type") == "docks":
            self.on_docked()
            self._answer()

    def _answer(self) -> None:
        self.answers += 1
