"""Make the live part of a model, a comparison or a followed pass."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tensornp.core.namespace.caller import name_of
from tensornp.widget.part import LivePart


def live_part(summary: Any, names: Mapping[str, Any], opened: str, anchor: str, **facts: Any) -> LivePart | None:
    """Return the part that docks into the card of `summary`; None if there is nothing to open.

    `opened` is the expression of an explorer or a pass, and `facts` are options and binder.
    """
    kind = type(summary).__name__
    if kind == "FollowedPass":
        from tensornp.widget.calls import CallsWidget

        is_tree = summary.is_over and len(summary._record.calls) > 1
        opened = opened or name_of(summary, names)
        return CallsWidget(summary, opened=opened, anchor=anchor, **facts) if is_tree else None
    if kind == "WeightsComparison":
        from tensornp.widget.comparison import ComparisonTable

        return ComparisonTable(summary, names, anchor=anchor) if summary.changed() else None
    if kind not in ("ModuleView", "WeightsExplorer"):
        return None
    explorer = summary.explorer if kind == "ModuleView" else summary
    if not explorer:
        return None
    from tensornp.widget.weights import WeightsWidget

    # The tree finds each weight in memory by its name, and holds none; without torch, all are in files.
    weights = explorer.values()
    if "torch" in sys.modules:
        from tensornp.models.live.refind import released_rows

        weights = released_rows(explorer, names, opened)
    tree = WeightsWidget(weights, opened=opened, classes=explorer.classes, anchor=anchor, **facts)
    if kind == "ModuleView":
        tree.tell(summary)
    return tree
