"""The live parts of a shell: a toggle for the last card, and parts that stay."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from IPython.display import display, update_display

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.names import bind, likely, suggested
from tensornp.widget.page import keeps_outputs_apart, runs_without_page

if TYPE_CHECKING:
    from tensornp.core.memory.identity import TensorReference
    from tensornp.core.summary.card import Surroundings, TensorSummary
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.session.ledger import Ledger
    from tensornp.widget.part import LivePart
    from tensornp.widget.toggle import TensorWidget

_ANCHOR = re.compile(r"tnp-[0-9a-f]{8}")
_SAID = "the live part of the output above, which is there while its kernel runs"
"""Text of a live part in a file, and where no widget can be made."""
_LIVE = ("TensorSummary", "ModuleView", "FollowedPass")
"""Summaries whose card has a place for a live part, with a kernel or not."""
_LIVE_IN_KERNEL = ("WeightsExplorer", "WeightsComparison")
NOTHING = {"text/html": "", "text/plain": ""}
_counts: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()
"""Displays of each cell by shell; those before an unloading are still on the page."""

Make = Callable[[], "LivePart | None"]


class IsolatedOutput:
    """The output of a live part in a front end that isolates outputs, as Colab and VS Code."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._display_id = ""

    def show(self, part: LivePart) -> None:
        """Show `part` under the cell that runs, and no longer under the one before."""
        self.clear()
        if not keeps_outputs_apart(self._shell):
            return
        self._display_id = f"{part.anchor}-live"
        # If it docks all the same, its own output is emptied.
        part.on_docked = self.clear
        view, metadata = part.view_bundle()
        display({**view, "text/plain": _SAID}, metadata=metadata, raw=True, display_id=self._display_id)

    def clear(self) -> None:
        """Empty the output, if there is one."""
        display_id, self._display_id = self._display_id, ""
        if display_id:
            update_display(NOTHING, display_id=display_id, raw=True)


class _Card(NamedTuple):
    reference: TensorReference
    summary: TensorSummary
    anchor: str


class Live:
    """The live parts of one shell."""

    def __init__(self, shell: Any, options: Callable[[], DisplayOptions], ledger: Ledger) -> None:
        self._shell, self._options, self._ledger = shell, options, ledger
        self._counts = _counts.setdefault(shell, Counter())
        self._cards: dict[str, _Card] = {}
        self._makes: dict[str, Make] = {}
        self._published: set[str] = set()
        self._parts: list[tuple[str, LivePart]] = []
        self._toggle: TensorWidget | None = None
        self._output = IsolatedOutput(shell)

    @property
    def is_wanted(self) -> bool:
        """Whether widgets are wanted, and there is a kernel with a front end; a terminal has none."""
        has_kernel = getattr(self._shell, "kernel", None) is not None
        return self._options().widget != "never" and has_kernel and not runs_without_page(self._shell)

    # --- what is shown

    def new_anchor(self) -> str:
        """Return a class that nothing else on the page has, for what the cell shows next."""
        cell = self._cell() or ""
        self._counts[cell] += 1
        # The name of a cell may have a path in it, which is no business of whoever reads the notebook.
        digest = hashlib.blake2s(f"{cell} {self._counts[cell]}".encode("utf-8", "replace"), digest_size=4)
        return f"tnp-{digest.hexdigest()}"

    def note(self, obj: Any, summary: Any, expression: str) -> str:
        """Note what is printed of `obj`, which `expression` reaches; return its anchor."""
        kind = type(summary).__name__
        has_part = kind in _LIVE or (kind in _LIVE_IN_KERNEL and self.is_wanted)
        anchor = self.new_anchor() if has_part else ""
        if not anchor or not self.is_wanted:
            return anchor
        if kind != "TensorSummary":
            opened = f"tnp.weights({expression})" if expression and kind == "ModuleView" else expression
            self._makes[anchor] = partial(self._part, summary, anchor, opened)
        elif summary.plan is not None and (summary.info.shape or self._options().widget == "always"):
            # A scalar has little to toggle, and a loop prints many.
            from tensornp.core.memory.identity import TensorReference

            self._cards[anchor] = _Card(TensorReference(obj), summary, anchor)
        return anchor

    def show(self, anchor: str, make: Make) -> None:
        """Make a part after the cell, which docks into what a magic has shown."""
        if self.is_wanted:
            self._makes[anchor] = make
            self._published.add(anchor)

    def show_part(self, summary: Any, anchor: str, opened: str = "") -> None:
        """Make the part of a summary after the cell; `opened` is the expression of an explorer."""
        self.show(anchor, partial(self._part, summary, anchor, opened))

    def see(self, message: Any) -> Any:
        """Note the anchors in a message to the page; what is never published gets no live part."""
        html = str(message.get("content", {}).get("data", {}).get("text/html", ""))
        self._published |= {*self._cards, *self._makes} & {*_ANCHOR.findall(html)}
        return message

    # --- before and after a cell

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        own = self._cell()
        for one in [one for one in self._parts if own and one[0] == own]:
            self._parts.remove(one)
            one[1].close()

    def after_cell(self, *_: Any) -> None:
        """Make what the cell has shown, and take the toggle to its last card."""
        # Another shell of the kernel may be in the middle of its import.
        look_again = getattr(sys.modules.get("tensornp.widget.part"), "look_again", None)
        if look_again is not None:
            look_again()
        published, self._published = self._published, set()
        cards = [card for anchor, card in self._cards.items() if anchor in published]
        makes = [make for anchor, make in self._makes.items() if anchor in published]
        self._cards, self._makes = {}, {}
        while makes:
            # Each is complete without its live part, and a callback that raises prints a traceback under the cell.
            first_that_works("a live part", lambda: self._keep(makes.pop(0)()), lambda _: None)
        first_that_works("the live toggle", lambda: self._move(cards), lambda _: None)

    def close(self) -> None:
        """Take every live part out of the page, and let go of their tensors."""
        self._output.clear()
        self._toggle, self._parts, self._cards, self._makes = None, [], {}, {}
        if "tensornp.widget.part" in sys.modules:
            from tensornp.widget.part import close_all

            close_all()

    def _cell(self) -> str:
        """Return the front end's id of the running cell; empty if it sends none."""
        try:
            found = self._shell.get_parent()["metadata"].get("cellId")
        except (AttributeError, KeyError, TypeError):
            return ""
        return found if isinstance(found, str) else ""

    def _keep(self, part: LivePart | None) -> None:
        """Show a part under the cell that has ended, and keep it there."""
        if part is not None:
            self._parts.append((self._cell(), part))
            IsolatedOutput(self._shell).show(part)

    def _move(self, cards: list[_Card]) -> None:
        cards = [card for card in cards if not card.reference.is_gone]
        if self._options().widget == "always" and self.is_wanted:
            for card in cards:
                self._keep(self._new_toggle(card))
        if self._options().widget != "auto":
            if self._toggle is not None:
                self._toggle.close()
            self._toggle = None
            self._output.clear()
        elif cards and self.is_wanted:
            if self._toggle is None:
                self._toggle = self._new_toggle(cards[-1])
            else:
                self._toggle.show(**self._facts(cards[-1]))
            self._output.show(self._toggle)

    # --- the parts

    def _bind(self, name: str, make: Callable[[], Any], overwrite: bool) -> None:
        bind(self._shell, name, make, overwrite)

    def _new_toggle(self, card: _Card) -> TensorWidget:
        from tensornp.widget.toggle import TensorWidget

        return TensorWidget(binder=self._bind, **self._facts(card))

    def _facts(self, card: _Card) -> dict[str, Any]:
        """Return the arguments of a toggle for its card."""
        around = card.summary.surroundings

        def look(tensor: Any, info: TensorInfo) -> Surroundings:
            # The toggle keeps the change that its card has shown.
            return self._ledger.surroundings_of(tensor, info)._replace(change=around.change)

        return {
            "held": lambda: card.reference.find(likely(self._shell, around.name)),
            "summary": card.summary,
            "options": self._options(),
            "look": look,
            "anchor": card.anchor,
            "suggestion": suggested(self._shell, card.reference, around.name),
        }

    def _part(self, summary: Any, anchor: str, opened: str) -> LivePart | None:
        from tensornp.fronts.live import live_part

        if type(summary).__name__ == "WeightsComparison" and keeps_outputs_apart(self._shell):
            # Its rows open below those of the printed table.
            return None
        return live_part(summary, self._shell.user_ns, opened, anchor, options=self._options(), binder=self._bind)
