"""The live parts in marimo, which dock into the static cards before them, as in Jupyter.

marimo makes a widget where it is shown, and nowhere else: so each part stands in a box that is not seen, and goes to
its card from there.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import marimo

from tensornp.models.explorer import WeightsExplorer
from tensornp.models.module_view import ModuleView
from tensornp.passes.follow import FollowedPass

if TYPE_CHECKING:
    from tensornp.models.comparing.comparison import WeightsComparison
    from tensornp.widget.comparison import ComparisonTable
    from tensornp.widget.part import LivePart
    from tensornp.widget.passes.calls import CallsWidget
    from tensornp.widget.weights import WeightsWidget


class _Shown(NamedTuple):
    """A part and the thread of its kernel: a server has one for each visitor."""

    part: LivePart
    kernel: threading.Thread


_living: list[_Shown] = []


def live_part_of(obj: Any, summary: Any, names: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the class of the card into which the live part of `obj` docks, and its HTML.

    None where it has none.
    """
    anchor = new_anchor()
    part = _part_of(obj, summary, names, anchor)
    return (anchor, html_of(part)) if part is not None else None


def new_anchor() -> str:
    """Return a class that no other card has."""
    return f"tnp-{uuid.uuid4().hex[:8]}"


def html_of(part: LivePart) -> str:
    """Return HTML that creates a part without showing it."""
    _close_gone(part)
    _living.append(_Shown(part, threading.current_thread()))
    return f'<div hidden style="display:none">{marimo.ui.anywidget(part).text}</div>'


def _close_gone(shown: LivePart) -> None:
    """Close the parts of cells that have run again, and of visitors who have left, which marimo keeps."""
    for one in list(_living):
        if one.part is shown or _is_closed(one.part) or not one.kernel.is_alive():
            _living.remove(one)
            if one.part is not shown:
                one.part.close()


def _is_closed(part: LivePart) -> bool:
    """Return whether the comm of a part is closed (a private name of marimo)."""
    return bool(getattr(part.comm, "_closed", part.comm is None))


def _part_of(obj: Any, summary: Any, names: Mapping[str, Any], anchor: str) -> LivePart | None:
    from tensornp.fronts.marimo.running import name_in

    name = name_in(names, obj)
    if isinstance(summary, ModuleView):
        part = _tree_of(summary.explorer, names, f"tnp.weights({name})" if name else "", anchor)
        if part is not None:
            part.tell(summary)
        return part
    if isinstance(obj, WeightsExplorer):
        return _tree_of(obj, names, name, anchor)
    if isinstance(obj, FollowedPass):
        return _calls_of(obj, name, anchor)
    return _rows_of(obj, names, anchor)


def _tree_of(explorer: WeightsExplorer, names: Mapping[str, Any], opened: str, anchor: str) -> WeightsWidget | None:
    if not explorer:
        return None
    from tensornp.models.live.refind import released_rows
    from tensornp.widget.weights import WeightsWidget

    rows = released_rows(explorer, names, opened)
    return WeightsWidget(rows, opened=opened, anchor=anchor, classes=explorer.classes)


def _calls_of(run: FollowedPass, opened: str, anchor: str) -> CallsWidget | None:
    if not run.is_over or len(run._record.calls) < 2:
        return None
    from tensornp.widget.passes.calls import CallsWidget

    return CallsWidget(run, opened=opened, anchor=anchor)


def _rows_of(found: WeightsComparison, names: Mapping[str, Any], anchor: str) -> ComparisonTable | None:
    from tensornp.widget.comparison import live_comparison

    return live_comparison(found, names, anchor)
