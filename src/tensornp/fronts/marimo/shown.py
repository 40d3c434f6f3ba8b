"""The static card in marimo, with a live part for explorers, modules and passes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.marimo.running import name_in, names_of_notebook, runs_in_notebook
from tensornp.fronts.shown import summary_in
from tensornp.render.view import summary_html


def mime_of(obj: Any) -> tuple[str, str]:
    """Return what marimo's `_mime_` is to give; nothing raises."""
    view = getattr(sys.modules.get("tensornp.widget.toggle"), "TensorWidget", None)
    if view is not None and isinstance(obj, view):
        return "text/html", first_that_works("a live card", lambda: _html_of_view(obj), lambda _: obj._repr_html_())
    names = names_of_notebook()
    summary = summary_in(names, obj, name_in(names, obj))
    live = first_that_works("a live part", lambda: _live_part_of(obj, summary, names), lambda _: None)
    anchor, part = live or ("", "")
    return "text/html", summary_html(summary, DisplayOptions(), anchor=anchor) + part


def _html_of_view(view: Any) -> str:
    """Return a live card, which docks into the static one; that alone where no notebook runs."""
    if not runs_in_notebook():
        html: str = view._repr_html_()
        return html
    from tensornp.fronts.marimo.live import html_of, new_anchor

    static: str = view.move_into(new_anchor())
    return static + html_of(view)


def _live_part_of(obj: Any, summary: Any, names: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the class of the card into which the live part of `obj` docks, and its HTML.

    None where it has none.
    """
    if not runs_in_notebook() or not _may_be_live(summary):
        return None
    from tensornp.fronts.marimo.live import live_part_of

    return live_part_of(obj, summary, names)


def _may_be_live(summary: Any) -> bool:
    return type(summary).__name__ in ("ModuleView", "WeightsExplorer", "FollowedPass", "WeightsComparison")
