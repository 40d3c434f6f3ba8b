"""The live trees of followed passes, which dock into their cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live
from tensornp.fronts.ipython.residents import Residents

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.passes.follow import FollowedPass


class LivePasses:
    """Makes the trees of passes live; each tree holds its pass until its cell runs again."""

    def __init__(self, shell: Any, config: TensorDisplay, bind: Callable[[str, Callable[[], Any], bool], None]) -> None:
        self._shell, self._config, self._bind = shell, config, bind
        self._residents = Residents(shell)
        self._made: tuple[FollowedPass, str, str] | None = None

    def note(self, run: FollowedPass, anchor: str, expression: str) -> None:
        """Remember a pass, the anchor of its card, and its expression."""
        self._made = run, anchor, expression

    def after_cell(self, result: Any = None) -> None:
        """Put a tree into the card of a pass that is the value of the cell."""
        value = getattr(result, "result", None)
        if value is not None:
            self.show(value)
        self._made = None

    def show(self, run: Any, opened: str = "") -> None:
        """Put a tree into the card that was just made of a pass; ignore other objects."""
        made, self._made = self._made, None
        if made is not None and made[0] is run:
            # The card is complete by itself.
            first_that_works(
                "the live tree of a pass", lambda: self._show(made[0], made[1], opened or made[2]), lambda _: None
            )

    def _show(self, run: FollowedPass, anchor: str, opened: str) -> None:
        if not run.is_over or len(run._record.calls) < 2 or not can_show_live(self._shell, self._config):
            return
        from tensornp.widget.passes.calls import CallsWidget

        output = IsolatedOutput(self._shell)
        widget = CallsWidget(
            run, opened=opened, anchor=anchor, options=self._config.options, binder=self._bind,
            has_values=not output.is_needed,
        )  # fmt: skip
        self._residents.keep(widget, output)

    def before_cell(self, *_: Any) -> None:
        """Close the trees of a cell that runs again."""
        self._residents.before_cell()

    def close(self) -> None:
        """Take all trees out of the page."""
        self._made = None
        self._residents.close()
