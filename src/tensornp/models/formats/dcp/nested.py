"""The dictionaries and lists of which torch joined the keys to names, as far as they tell of optimizers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.formats.dcp.metadata import Told
from tensornp.models.optimizers.param_groups import GROUPS, NAMES, PARAMS
from tensornp.models.optimizers.saved import SavedOptimizer, optimizers_in
from tensornp.models.pickles.tensors import is_size

_MAX_GROUPS = 10_000
"""Groups of which it is read which parameters they have."""
_A_TENSOR = object()


def optimizers_of(
    told: Told, entries: list[WeightEntry], values: Mapping[str, Any]
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the optimizers that were saved, and the weights, of which their states are of kind "state".

    Of `values`, only those are read that tell which parameters a group has.
    """
    if not any(GROUPS in name for name in told.values):
        # Groups have more than tensors.
        return [], entries
    # Before torch 2.4, the groups of an optimizer were one value.
    of_groups = (name for name in told.values if _path(told, name)[-1] in (GROUPS, PARAMS, NAMES))
    read = {name: values[name] for name in islice(of_groups, 2 * _MAX_GROUPS)}
    # In the order of what was saved: of several ranks, the first may have written what stood last.
    every = [name for name in told.paths if name in told.tensors or name in told.values]
    every += [name for name in (*told.tensors, *told.values) if name not in told.paths]
    root: dict[Any, Any] = {}
    for name in every:
        *above, last = _path(told, name)
        place: Any = root
        for key in above:
            place = place.setdefault(key, {}) if type(place) is dict else None
        if type(place) is dict:
            place.setdefault(last, read.get(name) if name in told.values else _A_TENSOR)
    return optimizers_in(root, _as_container, lambda: (_path(told, one.name) for one in entries), entries)


def _path(told: Told, name: str) -> tuple[Any, ...]:
    path = told.paths.get(name, ())
    return path if path and all(type(key) is str or is_size(key) for key in path) else (name,)


def _as_container(value: Any) -> Any:
    return value if type(value) in (dict, list, tuple) else None
