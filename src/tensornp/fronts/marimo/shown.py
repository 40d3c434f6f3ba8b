"""The static card in marimo with its live part; marimo is imported where it runs.

marimo creates a widget only where it is shown. So each part is in a hidden box, and moves to its card from there.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.lowlevel.fallback import first_that_works

if TYPE_CHECKING:
    from tensornp.widget.part import LivePart


class _Shown(NamedTuple):
    """A part and the thread of its kernel; a server has one for each visitor."""

    part: LivePart
    kernel: threading.Thread


_living: list[_Shown] = []


def runs_in_notebook() -> bool:
    """Return whether a notebook of marimo runs, not a script that has imported it."""
    runs = getattr(sys.modules.get("marimo"), "running_in_notebook", None)
    return runs is not None and bool(runs())


def mime_of(obj: Any) -> tuple[str, str]:
    """Return the result of a method `_mime_`; nothing raises."""
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.fronts.ours import summary_in
    from tensornp.render.show import summary_html

    toggle = getattr(sys.modules.get("tensornp.widget.toggle"), "TensorWidget", None)
    if toggle is not None and isinstance(obj, toggle):
        return "text/html", first_that_works("a live card", lambda: _toggle_html(obj), lambda _: obj._repr_html_())
    names = _names()
    name = next((name for name, value in list(names.items()) if value is obj and not name.startswith("_")), "")
    summary, anchor = summary_in(names, obj, name), f"tnp-{uuid.uuid4().hex[:8]}"
    part = None
    if runs_in_notebook():
        from tensornp.widget.live import live_part

        opened = f"tnp.weights({name})" if name and type(summary).__name__ == "ModuleView" else name
        part = first_that_works("a live part", lambda: live_part(summary, names, opened, anchor), lambda _: None)
    static = summary_html(summary, DisplayOptions(), anchor=anchor if part is not None else "")
    return "text/html", static + (_part_html(part) if part is not None else "")


def _names() -> Mapping[str, Any]:
    """Return the variables of the notebook; marimo has no public function for it."""
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
