"""How far a reading has come, under the cell that runs; nothing of it is left there, or saved."""

from __future__ import annotations

import time

from IPython.display import DisplayHandle, display

from tensornp.fronts.ipython.live import NOTHING


class CellBar:
    """One output of the cell, which is written anew until it is emptied."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._handle: DisplayHandle | None = None
        self._begin = 0.0
        self._had = 0

    def tell(self, done: int, total: int) -> None:
        """Show that so many bytes of so many were read."""
        # To load the extension takes a tenth longer with it.
        from tensornp.render.layout.progress import progress_html, progress_text

        if self._handle is None:
            self._begin, self._had = time.monotonic(), done
        seconds = time.monotonic() - self._begin
        told = self._what, done, total, (done - self._had) / seconds if seconds > 0 else 0.0
        shown = {"text/plain": progress_text(*told), "text/html": progress_html(*told)}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        """Empty it."""
        if self._handle is not None:
            self._handle.update(NOTHING, raw=True)
