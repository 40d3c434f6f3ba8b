"""The live toggle under the last shown card.

One for the life of the extension, which moves on with the next card.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.display import display, update_display

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.threads import cells
from tensornp.errors import BadRequestError, NameTakenError
from tensornp.fronts.ipython.anchors import cell_id
from tensornp.widget.page import keeps_outputs_apart, runs_without_page

if TYPE_CHECKING:
    from tensornp.core.memory.identity import TensorReference
    from tensornp.core.summary.card import TensorSummary
    from tensornp.core.summary.surroundings import Surroundings
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.session.ledger import Ledger
    from tensornp.widget.part import LivePart
    from tensornp.widget.toggle import TensorWidget

_ANCHOR = re.compile(r"tnp-[0-9a-f]{8}")
_SAID = "the live part of the output above, which is there while its kernel runs"
"""What is left of a live part in a file, or where no widget can be made."""
NOTHING = {"text/html": "", "text/plain": ""}


def can_show_live(shell: Any, config: TensorDisplay) -> bool:
    """Return whether widgets are wanted, and there is a kernel with a front end; a terminal has none."""
    has_kernel = getattr(shell, "kernel", None) is not None
    return config.options.widget != "never" and has_kernel and not runs_without_page(shell)


class IsolatedOutput:
    """The output of a live part in a front end that isolates outputs.

    JupyterLab and Notebook need none: there the part docks into its static card. Told are Colab and VS Code.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._display_id = ""

    @property
    def is_needed(self) -> bool:
        """Whether the front end is one of these."""
        return keeps_outputs_apart(self._shell)

    def show(self, widget: LivePart) -> None:
        """Show `widget` under the cell that runs, and no longer under the one before."""
        self.clear()
        if not self.is_needed:
            return
        self._display_id = f"{widget.anchor}-live"
        # Where it docks all the same, its own output is emptied.
        widget.on_docked = self.clear
        view, metadata = widget.view_bundle()
        display({**view, "text/plain": _SAID}, metadata=metadata, raw=True, display_id=self._display_id)

    def clear(self) -> None:
        """Empty the output, if there is one."""
        display_id, self._display_id = self._display_id, ""
        if display_id:
            update_display(NOTHING, display_id=display_id, raw=True)


class _Card(NamedTuple):
    """A card that was made for a tensor; whether anybody sees it is told when it is published."""

    reference: TensorReference
    summary: TensorSummary
    anchor: str


class _Resident(NamedTuple):
    """A widget that stays with its card, which the cell `cell_id` has shown."""

    widget: TensorWidget
    reference: TensorReference
    cell_id: str | None


def _look_again() -> None:
    """Have an open window on values read again: the cell may have written to the tensor."""
    # Another shell of the kernel may be in the middle of its import.
    look_again = getattr(sys.modules.get("tensornp.widget.part"), "look_again", None)
    if look_again is not None:
        look_again()


class LiveToggle:
    """Moves the toggle, after each cell that showed a tensor, to the last card.

    A card without an array leaves it.
    """

    def __init__(self, shell: Any, config: TensorDisplay, ledger: Ledger) -> None:
        self._shell = shell
        self._config = config
        self._ledger = ledger
        self._made: dict[str, _Card] = {}
        self._published: set[str] = set()
        self._toggle: TensorWidget | None = None
        self._output = IsolatedOutput(shell)
        self._residents: list[_Resident] = []

    @property
    def publishers(self) -> Iterator[Any]:
        """The publishers of displays and results in this shell."""
        for publisher in (self._shell.display_pub, self._shell.displayhook):
            if hasattr(publisher, "register_hook"):
                yield publisher

    def note(self, tensor: Any, summary: TensorSummary, anchor: str) -> None:
        """Remember that a card of `tensor` was made; one without an array has nothing to toggle."""
        if summary.plan is not None and can_show_live(self._shell, self._config):
            from tensornp.core.memory.identity import TensorReference

            self._made[anchor] = _Card(TensorReference(tensor), summary, anchor)

    def see(self, message: Any) -> Any:
        """Note the cards in a message to the page; a representation that is never published gets no toggle."""
        if self._made:
            html = str(message.get("content", {}).get("data", {}).get("text/html", ""))
            self._published |= self._made.keys() & _ANCHOR.findall(html)
        return message

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        own = cell_id(self._shell)
        if own is None:
            return
        for resident in list(self._residents):
            if resident.cell_id == own:
                self._close(resident)

    def after_cell(self, result: Any = None) -> None:
        """Take the toggle to the last card of the cell that has just ended, or give one to each of its cards."""
        _look_again()
        made, self._made = self._made, {}
        published, self._published = self._published, set()
        value = getattr(result, "result", None)
        shown = [
            card for card in made.values()
            # An older kernel does not tell of the results that it publishes.
            if (card.anchor in published or card.reference.is_of(value)) and not card.reference.is_gone
        ]  # fmt: skip
        # The card is complete by itself, and a callback that raises prints a traceback under the cell.
        first_that_works("the live toggle", lambda: self._move(shown), lambda _: None)

    def after_callback(self, *_: Any) -> None:
        """Do the same where a widget's callback, which is no cell, has shown a card."""
        runs_cell = cells.run_in(threading.get_ident()) or cells.run_in(threading.main_thread().ident)
        if self._made and not runs_cell:
            self.after_cell()

    def _move(self, shown: list[_Card]) -> None:
        self._close_outlived()
        if self._config.options.widget != "auto":
            self._rest()
        if self._config.options.widget == "always" and can_show_live(self._shell, self._config):
            for card in shown:
                widget = self._new_toggle()
                self._residents.append(_Resident(widget, card.reference, cell_id(self._shell)))
                self._aim(widget, card)
                IsolatedOutput(self._shell).show(widget)
        elif shown and can_show_live(self._shell, self._config):
            self._toggle = self._toggle or self._new_toggle()
            self._aim(self._toggle, shown[-1])
            self._output.show(self._toggle)

    def _close_outlived(self) -> None:
        """Close the toggles of cards whose tensors are gone, or which are no longer wanted."""
        docked = list(self._residents)
        if not docked:
            return
        # It brings torch, which a notebook need not have imported.
        from tensornp.core.memory.identity import living

        is_wanted = self._config.options.widget == "always"
        alive = living([resident.reference for resident in docked]) if is_wanted else [False] * len(docked)
        for resident, lives in zip(docked, alive, strict=True):
            if not lives:
                self._close(resident)

    def _new_toggle(self) -> TensorWidget:
        from tensornp.widget.toggle import TensorWidget

        return TensorWidget(binder=self.bind, reaches=self._reaches)

    def _aim(self, widget: TensorWidget, card: _Card) -> None:
        def look(tensor: Any, info: TensorInfo) -> Surroundings:
            # What had changed when the card was shown is what its toggle goes on to say.
            return replace(self._ledger.surroundings_of(tensor, info), change=card.summary.surroundings.change)

        widget.show(
            lambda: card.reference.find(self._likely(card.summary.surroundings.name)),
            card.summary,
            options=self._config.options,
            look=look,
            anchor=card.anchor,
            suggestion=self._suggest(card.reference, card.summary.surroundings.name),
        )

    def _rest(self) -> None:
        if self._toggle is not None and self._toggle.anchor:
            self._toggle.rest()
        self._output.clear()

    def _close(self, resident: _Resident) -> None:
        self._residents.remove(resident)
        resident.widget.close()

    def close(self) -> None:
        """Take every live part out of the page, and let go of their tensors."""
        self._output.clear()
        self._toggle, self._residents, self._made = None, [], {}
        if "tensornp.widget.part" in sys.modules:
            from tensornp.widget.part import close_all

            close_all()

    def bind(self, name: str, make: Callable[[], Any], overwrite: bool) -> None:
        """Bind what `make` returns to `name` for the user; `NameTakenError` if that cannot be, or is taken."""
        from tensornp.fronts.ipython.names import occupant

        taken = occupant(self._shell, name)
        if taken and not overwrite:
            raise NameTakenError(f"{name} already names {taken}; press Overwrite to replace it", can_overwrite=True)
        self._shell.push({name: make()})

    def _likely(self, reached: str) -> Iterator[Any]:
        """Yield what a card is most often about.

        What its expression reaches, the variables, the results of cells.
        """
        from tensornp.core.namespace.lookup import look_up
        from tensornp.core.namespace.search import history_name

        namespace = self._shell.user_ns
        if reached:
            # Each move of the navigator asks, and a search among all objects takes longer than all else of a move.
            with suppress(Exception):
                yield look_up(reached, namespace)
        yield from list(namespace.values())
        yield from list(namespace["_oh"].values()) if history_name(namespace) else []

    def _reaches(self, name: str, tensor: Any) -> bool:
        """Return whether an expression of the notebook reaches `tensor` now.

        True of what is no expression of it.
        """
        from tensornp.core.namespace.lookup import look_up

        try:
            return not name or look_up(name, self._shell.user_ns) is tensor
        except BadRequestError:
            return False

    def _suggest(self, reference: TensorReference, reached: str = "") -> str:
        """Return ``layer_weight_np`` for layer.weight, ``array_np`` for a tensor without a name."""
        names = (name for name, value in list(self._shell.user_ns.items()) if reference.is_of(value))
        own = reached or next((name for name in names if not name.startswith("_")), "")
        suggested = re.sub(r"\W+", "_", own).strip("_") + "_np"
        return suggested if own and suggested.isidentifier() else "array_np"
