"""The live parts of models under their tables.

Trees and comparisons, which go when their cells run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live
from tensornp.fronts.ipython.residents import Residents

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.models.comparing.comparison import WeightsComparison
    from tensornp.models.explorer import WeightsExplorer
    from tensornp.models.module_view import ModuleView


class LiveWeights:
    """Makes tables of weights live.

    A weight in memory is found by its name at each request, and no tree holds it.
    """

    def __init__(self, shell: Any, config: TensorDisplay, bind: Callable[[str, Callable[[], Any], bool], None]) -> None:
        self._shell, self._config, self._bind = shell, config, bind
        self._residents = Residents(shell)
        self._made: tuple[Any, ModuleView, str, str] | None = None

    def note(self, module: Any, view: ModuleView, anchor: str, expression: str) -> None:
        """Remember that a table of a module was made, which `expression` gives."""
        self._made = module, view, anchor, expression

    def after_cell(self, result: Any = None) -> None:
        """Put a tree into the table of the module that the cell which has just ended has returned."""
        made, self._made = self._made, None
        if made is not None and made[0] is getattr(result, "result", None):
            module, view, anchor, expression = made
            del module, made
            self.show(view.explorer, anchor, f"tnp.weights({expression})" if expression else "", view)

    def show(self, explorer: WeightsExplorer, anchor: str, opened: str, view: ModuleView | None = None) -> None:
        """Put a tree into the table of class `anchor`; `opened` is the expression of the explorer.

        `view` is that of a module, of which some is known already.
        """
        # The table is complete by itself.
        first_that_works("the live weights", lambda: self._show(explorer, anchor, opened, view), lambda _: None)

    def _show(self, explorer: WeightsExplorer, anchor: str, opened: str, view: ModuleView | None) -> None:
        if not explorer or not can_show_live(self._shell, self._config):
            return
        from tensornp.models.live.refind import released_rows
        from tensornp.widget.weights import WeightsWidget

        output = IsolatedOutput(self._shell)
        rows = released_rows(explorer, self._shell.user_ns, opened)
        widget = WeightsWidget(
            rows, opened=opened, anchor=anchor, options=self._config.options, binder=self._bind,
            classes=explorer.classes,
        )  # fmt: skip
        if view is not None:
            widget.tell(view)
        self._residents.keep(widget, output)

    def show_comparison(self, found: WeightsComparison, anchor: str) -> None:
        """Make the table of class `anchor` sortable, and have its rows open both sides."""
        first_that_works("the live comparison", lambda: self._show_comparison(found, anchor), lambda _: None)

    def _show_comparison(self, found: WeightsComparison, anchor: str) -> None:
        output = IsolatedOutput(self._shell)
        if output.is_needed or not can_show_live(self._shell, self._config):
            return
        from tensornp.widget.comparison import live_comparison

        widget = live_comparison(found, self._shell.user_ns, anchor)
        if widget is not None:
            self._residents.keep(widget, output)

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        self._residents.before_cell()

    def close(self) -> None:
        """Take all out of the page, and let go of what was shown."""
        self._made = None
        self._residents.close()
