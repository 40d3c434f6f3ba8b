"""The live toggle under the last shown card: at most one, which moves on with the next tensor."""

from __future__ import annotations

import logging
import weakref
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from tensornp.errors import NameTakenError

if TYPE_CHECKING:
    from tensornp.core.changes import Change
    from tensornp.core.facts import TensorInfo
    from tensornp.core.summary import TensorSummary
    from tensornp.core.surroundings import Surroundings
    from tensornp.notebook.config import TensorDisplay
    from tensornp.notebook.ledger import Ledger
    from tensornp.widget.dock import DockingWidget
    from tensornp.widget.toggle import TensorWidget

_log = logging.getLogger(__name__)
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
NOTHING = {"text/html": "", "text/plain": ""}


def can_show_live(shell: Any, config: TensorDisplay) -> bool:
    """Return whether widgets are wanted, and there is a kernel with a front end; a terminal has none."""
    return config.widget != "never" and getattr(shell, "kernel", None) is not None


def show_live(widget: DockingWidget) -> str:
    """Show a live part under its static card, into which it docks; returns its display id.

    Once it sits in the card, its own output is emptied, so that a saved notebook holds no widget. Where no widget can
    be shown, nothing extra appears: the static card above says it all.
    """
    display_id = f"{widget.anchor}-live"
    widget.on_docked = lambda: update_display(NOTHING, display_id=display_id, raw=True)
    shown = widget._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else (shown or {})
    display({WIDGET_MIME: bundle[WIDGET_MIME], "text/plain": ""}, raw=True, display_id=display_id)
    return display_id


class LiveToggle:
    """Shows the toggle after each cell that showed a tensor, and takes the one before it back."""

    def __init__(self, shell: Any, config: TensorDisplay, ledger: Ledger) -> None:
        self._shell = shell
        self._config = config
        self._ledger = ledger
        self._shown: list[tuple[weakref.ref[Any], str, Change | None]] = []
        self._live: tuple[TensorWidget, str] | None = None

    def note(self, tensor: Any, summary: TensorSummary, anchor: str) -> None:
        """Remember that the card of `tensor` was shown; one without an array has nothing to toggle."""
        anchor = anchor if summary.plan is not None else ""
        self._shown.append((weakref.ref(tensor), anchor, summary.surroundings.change))

    def after_cell(self, *_: Any) -> None:
        """Take the toggle to the last card of the cell that has just ended, or to all of its cards."""
        shown, self._shown = self._shown, []
        if not shown:
            return
        if self._config.widget != "always":
            self.retire()
        if not can_show_live(self._shell, self._config):
            return
        for reference, anchor, change in shown if self._config.widget == "always" else shown[-1:]:
            tensor = reference()
            if tensor is not None and anchor:
                try:
                    self._show(tensor, anchor, change)
                except Exception as error:
                    # The card is complete by itself, and a callback that raises prints a traceback under the cell.
                    _log.warning("the live toggle cannot be shown: %s", error)

    def retire(self) -> None:
        """Take the live toggle back; where its mode is not the card's own, a line stays that states it."""
        if self._live is None:
            return
        widget, display_id = self._live
        self._live = None
        left = widget.closing_words()
        widget.close()
        bundle = {"text/html": f"<small>{escape(left)}</small>", "text/plain": left} if left else NOTHING
        update_display(bundle, display_id=display_id, raw=True)

    def pin(self, tensor: Any) -> TensorWidget:
        """Return a live card of `tensor` that stands alone, stays, and binds names in this shell."""
        from tensornp.widget.toggle import TensorWidget

        return TensorWidget(
            tensor,
            options=self._config.options,
            look=self._ledger.glance,
            suggestion=self._suggest(tensor),
            binder=self.bind,
        )

    def bind(self, name: str, array: Any, overwrite: bool) -> str:
        """Bind `array` to `name` in the user's namespace; `NameTakenError` if that cannot be, or is taken."""
        from tensornp.notebook.names import occupant

        taken = occupant(self._shell, name)
        if taken and not overwrite:
            raise NameTakenError(f"{name} already names {taken}; press Overwrite to replace it", can_overwrite=True)
        self._shell.push({name: array})
        return f"{name} is bound"

    def _show(self, tensor: Any, anchor: str, change: Change | None) -> None:
        from tensornp.widget.toggle import TensorWidget

        def look(tensor: Any, info: TensorInfo) -> Surroundings:
            # What had changed when the card was shown is what its toggle goes on to say.
            return replace(self._ledger.glance(tensor, info), change=change)

        widget = TensorWidget(
            tensor,
            options=self._config.options,
            look=look,
            keep=False,
            anchor=anchor,
            suggestion=self._suggest(tensor),
            binder=self.bind,
        )
        display_id = show_live(widget)
        if self._config.widget != "always":
            self._live = widget, display_id

    def _suggest(self, tensor: Any) -> str:
        """Return ``<name>_np`` for the name that the user knows `tensor` by, ``array_np`` for one without."""
        for name, value in self._shell.user_ns.items():
            if value is tensor and not name.startswith("_"):
                return f"{name}_np"
        return "array_np"
