"""Find a released weight again by its expression or by its memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.memory.identity import WeakView
from tensornp.core.namespace.lookup import look_up
from tensornp.errors import BadRequestError, NoDataError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.released import Find, released
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.explorer import WeightsExplorer

_ROOT = re.compile(r"[^\W\d]\w*(?![\w(])")
_KEPT_HERE = "kept by this tree alone; for code that reaches it, bind it to a name first, and run %weights on that"


def released_from(
    explorer: WeightsExplorer, namespace: Mapping[str, Any], opened: str
) -> tuple[list[WeightEntry], list[WeakView]]:
    """Return the weights without references to tensors, and weak views of lost ones.

    A weight is lost if its expression does not reach it, such as one with a call.
    """
    live = [entry for entry in explorer.values() if isinstance(entry._source, TensorSource)]
    first = next((entry.code for entry in live if entry.code), "")
    # Weights with the root of the first are reached if it is: a look-up of each takes seconds in large models.
    root = _ROOT.match(first)
    begins = root[0] if root is not None and _is_reached(first, namespace) else None
    lost = [
        one for one in live if begins is None or not (one.code.startswith(begins) or _is_reached(one.code, namespace))
    ]
    views = {entry.name: WeakView(entry.tensor) for entry in lost}
    rows = []
    for entry in explorer.values():
        find = ByMemory(entry, views[entry.name]) if entry.name in views else ByName(entry, namespace, opened)
        rows.append(released(entry, find))
    return rows, list(views.values())


def _is_reached(code: str, namespace: Mapping[str, Any]) -> bool:
    try:
        look_up(code, namespace)
    except BadRequestError:
        return False
    return True


class ByName(Find):
    """Looks expressions up, or else the weight in the explorer `opened`."""

    def __init__(self, row: WeightEntry, namespace: Mapping[str, Any], opened: str) -> None:
        self._name, self._code, self._namespace, self._opened = row.name, row.code, namespace, opened

    def __call__(self, expression: str) -> Any:
        """Return the object that an expression reaches now."""
        try:
            return look_up(expression, self._namespace)
        except BadRequestError:
            held = self._held()
        if held is None:
            raise NoDataError(f"{expression} reaches no weight any more; show them again")
        return held

    def _held(self) -> Any:
        explorer = self._namespace.get(self._opened)
        if not isinstance(explorer, WeightsExplorer) or self._name not in explorer:
            return None
        found = explorer[self._name]
        return found.tensor if found.code == self._code else None


class ByMemory(Find):
    """Gives a tensor for as long as its memory lives, which `view` may keep."""

    def __init__(self, row: WeightEntry, view: WeakView) -> None:
        self._said, self._requires_grad, self._view = row.code or row.name, bool(row.requires_grad), view

    @property
    def note(self) -> str:
        """That nobody else has it."""
        return _KEPT_HERE if self._view.is_kept else ""

    @property
    def is_itself(self) -> bool:
        """Never: it is made for each request."""
        return False

    def __call__(self, expression: str) -> Any:
        """Return a tensor over the same elements; no expression that calls is run again."""
        tensor = self._view.tensor()
        if tensor is None:
            raise NoDataError(f"{self._said} no longer exists; assign it to a variable and show it again")
        with outside_modes():
            return tensor.requires_grad_(self._requires_grad)
