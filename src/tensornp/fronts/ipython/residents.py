"""Live parts that stay with the tables that they dock into, until their cells run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.fronts.ipython.anchors import cell_id

if TYPE_CHECKING:
    from tensornp.fronts.ipython.live import IsolatedOutput
    from tensornp.widget.part import LivePart


class _Resident(NamedTuple):
    """A live part that stays with the table that it docks into, under the cell `cell_id`."""

    widget: LivePart
    cell_id: str | None


class Residents:
    """The live parts of one shell that have each a table of its own."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._all: list[_Resident] = []

    def __iter__(self) -> Iterator[LivePart]:
        return (one.widget for one in self._all)

    def keep(self, widget: LivePart, output: IsolatedOutput) -> None:
        """Show a live part under the cell that runs, and keep it there."""
        self._all.append(_Resident(widget, cell_id(self._shell)))
        output.show(widget)

    @property
    def last(self) -> LivePart:
        """The one that was kept last."""
        return self._all[-1].widget

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        own = cell_id(self._shell)
        for resident in list(self._all):
            if own is not None and resident.cell_id == own:
                self._all.remove(resident)
                resident.widget.close()

    def close(self) -> None:
        """Take all out of the page."""
        while self._all:
            self._all.pop().widget.close()
