"""Live parts in marimo, which dock into the static cards before them, as in Jupyter.

marimo creates a widget only where it is shown. So each part is in a hidden box, and moves to its card from there.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import marimo

if TYPE_CHECKING:
    from tensornp.widget.part import LivePart


class _Shown(NamedTuple):
    """A part and the thread of its kernel; a server has one for each visitor."""

    part: LivePart
    kernel: threading.Thread


_living: list[_Shown] = []


def new_anchor() -> str:
    """Return a class that no other card has."""
    return f"tnp-{uuid.uuid4().hex[:8]}"


def html_of(part: LivePart) -> str:
    """Return HTML that creates a part without showing it.

    Parts of visitors who have left, and of cells that have run again, are closed; marimo keeps them.
    """
    for one in list(_living):
        if one.part is part or _is_closed(one.part) or not one.kernel.is_alive():
            _living.remove(one)
            if one.part is not part:
                one.part.close()
    _living.append(_Shown(part, threading.current_thread()))
    return f'<div hidden style="display:none">{marimo.ui.anywidget(part).text}</div>'


def _is_closed(part: LivePart) -> bool:
    """Return whether the comm of a part is closed (a private name of marimo)."""
    return bool(getattr(part.comm, "_closed", part.comm is None))


def part_of(obj: Any, summary: Any, names: Mapping[str, Any], name: str, anchor: str) -> LivePart | None:
    """Return the live part of the object `name`, None if there is nothing to open."""
    kind = type(summary).__name__
    if kind == "FollowedPass":
        from tensornp.widget.calls import CallsWidget

        is_tree = obj.is_over and len(obj._record.calls) > 1
        return CallsWidget(obj, opened=name, anchor=anchor) if is_tree else None
    if kind == "WeightsComparison":
        from tensornp.widget.comparison import live_comparison

        return live_comparison(obj, names, anchor)
    from tensornp.models.live.refind import released_rows
    from tensornp.widget.weights import WeightsWidget

    is_module = kind == "ModuleView"
    explorer = summary.explorer if is_module else obj
    if not explorer:
        return None
    opened = f"tnp.weights({name})" if is_module and name else "" if is_module else name
    tree = WeightsWidget(released_rows(explorer, names, opened), opened=opened, anchor=anchor, classes=explorer.classes)
    if is_module:
        tree.tell(summary)
    return tree
