"""marimo: tensors, records and containers show as in Jupyter, and explorers and passes are live.

marimo has no public registry for classes of others, so that its look-up is wrapped; `marimo._output.formatting` is
private. It creates a widget only where it is shown: each part is in a hidden box, and moves to its card from there.
"""

from __future__ import annotations

import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ours import has_own_display, is_ours, summary_in
from tensornp.render.renderers import renderer_of

if TYPE_CHECKING:
    from tensornp.widget.part import LivePart

Formatter = Callable[[Any], tuple[str, str]]
_NO_REGISTRY = (
    "this marimo keeps its formatters elsewhere than the versions that tensornp was tried with: a bare tensor shows as "
    "torch prints it, and tnp.card(t) as a card"
)


class _Shown(NamedTuple):
    """A part and the thread of its kernel; a server has one for each visitor."""

    part: LivePart
    kernel: threading.Thread


_living: list[_Shown] = []
_standing: list[_LookUp] = []


def runs_in_notebook() -> bool:
    """Return whether a notebook of marimo runs, not a script that has imported it."""
    runs = getattr(sys.modules.get("marimo"), "running_in_notebook", None)
    return runs is not None and bool(runs())


def mime_of(obj: Any) -> tuple[str, str]:
    """Return the result of a method `_mime_`; nothing raises."""
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.render.show import summary_bundle

    toggle = getattr(sys.modules.get("tensornp.widget.toggle"), "TensorWidget", None)
    if toggle is not None and isinstance(obj, toggle):
        return "text/html", first_that_works("a live card", lambda: _toggle_html(obj), lambda _: obj._repr_html_())
    names = _names()
    name = next((name for name, value in list(names.items()) if value is obj and not name.startswith("_")), "")
    summary, anchor = summary_in(names, obj, name), f"tnp-{uuid.uuid4().hex[:8]}"
    part = None
    if runs_in_notebook():
        from tensornp.fronts.live import live_part

        opened = f"tnp.weights({name})" if name and type(summary).__name__ == "ModuleView" else name
        part = first_that_works("a live part", lambda: live_part(summary, names, opened, anchor), lambda _: None)
    static = summary_bundle(summary, DisplayOptions(), anchor=anchor if part is not None else "")
    return "text/html", static["text/html"] + (_part_html(part) if part is not None else "")


def _names() -> Mapping[str, Any]:
    context = getattr(sys.modules.get("marimo._runtime.context"), "get_context", None)
    try:
        names: Mapping[str, Any] = context().globals if context is not None else {}
    except Exception:
        # Scripts have no context, and other versions may keep the names elsewhere.
        return {}
    return names


def _toggle_html(toggle: Any) -> str:
    """Return a live card, which docks into the static one; the static card alone without a notebook."""
    if not runs_in_notebook():
        return str(toggle._repr_html_())
    return str(toggle.move_into(f"tnp-{uuid.uuid4().hex[:8]}")) + _part_html(toggle)


def _part_html(part: LivePart) -> str:
    """Return HTML that creates a part without showing it.

    Parts of visitors who have left, and of cells that have run again, are closed; marimo keeps them.
    """
    import marimo

    for one in list(_living):
        # A private name of marimo says whether a comm is closed.
        is_closed = getattr(one.part.comm, "_closed", one.part.comm is None)
        if one.part is part or is_closed or not one.kernel.is_alive():
            _living.remove(one)
            if one.part is not part:
                one.part.close()
    _living.append(_Shown(part, threading.current_thread()))
    return f'<div hidden style="display:none">{marimo.ui.anywidget(part).text}</div>'


class _LookUp:
    """Wraps marimo's `get_formatter`: ours first, then theirs.

    marimo copies an entry for a class to each subclass, and has entries for modules, lists and dicts already.
    """

    def __init__(self, registry: Any) -> None:
        self.registry = registry
        self._before: Callable[[Any], Formatter | None] = registry.get_formatter
        self.is_on = True

    def __call__(self, obj: Any) -> Formatter | None:
        """Return the formatter of `obj`, or None for objects with methods of their own."""
        before = self._before(obj)
        is_marimo_s = before is None or getattr(before, "__module__", "").partition(".")[0] == "marimo"
        if not self.is_on or not is_marimo_s:
            return before
        return mime_of if first_that_works("a display", lambda: _shows(obj), lambda _: is_tensor(obj)) else before


def _shows(obj: Any) -> bool:
    # Records have methods of their own.
    return not isinstance(obj, type) and renderer_of(obj) is None and is_ours(obj, has_own_display)


def register() -> None:
    """Wrap marimo's look-up; a second call does nothing."""
    if _standing:
        return
    try:
        from marimo._output.formatting import FORMATTERS

        look_up = _LookUp(FORMATTERS)
        vars(FORMATTERS)["get_formatter"] = look_up
    except (ImportError, AttributeError):
        warnings.warn(_NO_REGISTRY, RuntimeWarning, stacklevel=3)
        return
    _standing.append(look_up)


def unregister() -> None:
    """Remove the wrapper; one that was wrapped again since only passes calls on."""
    while _standing:
        look_up = _standing.pop()
        look_up.is_on = False
        if vars(look_up.registry).get("get_formatter") is look_up:
            del look_up.registry.get_formatter
