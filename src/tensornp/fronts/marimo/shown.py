"""The static card in marimo with its live part; marimo is not imported here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works

LIVE = ("ModuleView", "WeightsExplorer", "FollowedPass", "WeightsComparison")
"""Classes with a live part."""


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
    summary = summary_in(names, obj, name)
    live = first_that_works("a live part", lambda: _live_part_of(obj, summary, names, name), lambda _: None)
    anchor, part = live or ("", "")
    return "text/html", summary_html(summary, DisplayOptions(), anchor=anchor) + part


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
        html: str = toggle._repr_html_()
        return html
    from tensornp.fronts.marimo.live import html_of, new_anchor

    static: str = toggle.move_into(new_anchor())
    return static + html_of(toggle)


def _live_part_of(obj: Any, summary: Any, names: Mapping[str, Any], name: str) -> tuple[str, str] | None:
    """Return the class of the card for the live part of `obj`, and the HTML of the part; None without one."""
    if not runs_in_notebook() or type(summary).__name__ not in LIVE:
        return None
    from tensornp.fronts.marimo.live import html_of, new_anchor, part_of

    anchor = new_anchor()
    part = part_of(obj, summary, names, name, anchor)
    return (anchor, html_of(part)) if part is not None else None
