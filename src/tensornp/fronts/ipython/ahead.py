"""What the first card needs is imported in the idle kernel, after the cell that has loaded us: nobody waits for it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

IDLE_S = 0.2
"""After a cell, whose outputs come first; the next one may begin meanwhile."""
NEEDED = ("tensornp.render.view", "tensornp.widget.toggle", "tensornp.widget.navigator")


class Ahead:
    """The one time that modules are imported ahead in one shell."""

    def __init__(self) -> None:
        self._is_due = True
        self._waiting: asyncio.TimerHandle | None = None

    def after_cell(self, _: Any) -> None:
        """Have them imported once the kernel is idle, if torch is there; a console has nobody who would do it."""
        if not self._is_due or "torch" not in sys.modules:
            return
        self._is_due = False
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._import_next(loop, NEEDED)

    def forget(self) -> None:
        """Import no more."""
        self._is_due = False
        if self._waiting is not None:
            self._waiting.cancel()

    def _import_next(self, loop: asyncio.AbstractEventLoop, names: tuple[str, ...]) -> None:
        """Import one after the other, with time for what comes in between."""

        def import_one() -> None:
            # Who shows a tensor is told what is missing.
            with suppress(Exception):
                import_module(names[0])
            self._import_next(loop, names[1:])

        self._waiting = loop.call_later(IDLE_S, import_one) if names else None
