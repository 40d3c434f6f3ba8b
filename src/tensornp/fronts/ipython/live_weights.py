"""The live trees under `%weights`: one for each that was shown, which goes when its cell runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.anchors import cell_id
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live

if TYPE_CHECKING:
    from tensornp.core.memory.weak_view import WeakView
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.models.explorer import WeightsExplorer
    from tensornp.widget.weights import WeightsWidget


class _Resident(NamedTuple):
    """A tree that stays with the table that it docks into, under the cell `cell_id`."""

    widget: WeightsWidget
    cell_id: str | None


class LiveWeights:
    """Makes tables of weights live; what lies in memory is found by its name when it is asked for, and held by none.

    What nobody else holds, since it was typed into the magic alone, is kept as long as its tree.
    """

    def __init__(self, shell: Any, config: TensorDisplay, bind: Callable[[str, Callable[[], Any], bool], None]) -> None:
        self._shell, self._config, self._bind = shell, config, bind
        self._residents: list[_Resident] = []
        self._kept: list[WeakView] = []

    def show(self, explorer: WeightsExplorer, anchor: str, opened: str) -> None:
        """Put a tree into the table of class `anchor`; `opened` is the expression of the explorer."""
        # The table is complete by itself.
        first_that_works("the live weights", lambda: self._show(explorer, anchor, opened), lambda _: None)

    def _show(self, explorer: WeightsExplorer, anchor: str, opened: str) -> None:
        if not explorer or not can_show_live(self._shell, self._config):
            return
        from tensornp.models.live.find import released_from
        from tensornp.widget.weights import WeightsWidget

        output = IsolatedOutput(self._shell)
        rows, self._kept = released_from(explorer, self._shell.user_ns, opened)
        for view in self._kept:
            view.keep()
        widget = WeightsWidget(
            rows, opened=opened, anchor=anchor, options=self._config.options, binder=self._bind,
            has_values=not output.is_needed,
        )  # fmt: skip
        self._residents.append(_Resident(widget, cell_id(self._shell)))
        output.show(widget)

    def settle(self) -> None:
        """Keep of the weights that were shown last only what nobody else has: called when the magic has let go of them.

        No code reaches those any more: what was typed would make others.
        """
        for view in self._kept:
            view.share()
        if any(view.is_kept for view in self._kept):
            self._residents[-1].widget.opened = ""
        self._kept = []

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        own = cell_id(self._shell)
        for resident in list(self._residents):
            if own is not None and resident.cell_id == own:
                self._residents.remove(resident)
                resident.widget.close()

    def close(self) -> None:
        """Take all out of the page."""
        while self._residents:
            self._residents.pop().widget.close()
