"""Whether a notebook of marimo runs, and what its variables are; marimo is not imported for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def runs_in_notebook() -> bool:
    """Return whether a notebook of marimo runs, and no script that has imported it."""
    runs = getattr(sys.modules.get("marimo"), "running_in_notebook", None)
    return runs is not None and bool(runs())


def names_of_notebook() -> Mapping[str, Any]:
    """Return the variables of the notebook that runs.

    None where marimo, which has no public word for it, says none.
    """
    context = getattr(sys.modules.get("marimo._runtime.context"), "get_context", None)
    try:
        names: Mapping[str, Any] = context().globals if context is not None else {}
    except Exception:
        # Outside of a notebook there is no context, and another version may keep them elsewhere.
        return {}
    return names


def name_in(names: Mapping[str, Any], obj: Any) -> str:
    """Return the variable that is `obj`; empty where there is none."""
    found = (name for name, value in list(names.items()) if value is obj and not name.startswith("_"))
    return next(found, "")
