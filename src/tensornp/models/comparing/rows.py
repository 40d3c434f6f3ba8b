"""Put the weights of a comparison in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensornp.core.values.compare.compare import Comparison
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.optimizers import GROUPS, STATE
from tensornp.models.outline.fold import Row, folded

STEP = "step"
"""The quantity that counts."""
_MIN_TOGETHER = 3
"""Fewer states of a quantity are seen one by one."""


def quantity_of(entry: WeightEntry) -> str:
    """Return the optimizer's name of a state or a group option, ``""`` for a weight."""
    keys = entry.name.split(".")
    if not (entry.kind == "state" and STATE in keys) and GROUPS not in keys:
        return ""
    return next((key for key in reversed(keys) if not key.isdecimal()), "")


def parameter_of(entry: WeightEntry) -> str:
    """Return "of 'weight'" for a state without its parameter in the name, or ``""``."""
    if len(entry._saved_as or ()) < 2 or not quantity_of(entry):
        return ""
    return entry.note.partition(", ")[0]


def has_other_shape(found: Comparison) -> bool:
    """Return whether a weight has another shape on the other side."""
    return found._shapes[0] != found._shapes[1]


def rows_of(names: Sequence[str], found: Mapping[str, Comparison], first: Mapping[str, WeightEntry]) -> list[Row]:
    """Return some names in rows, sorted by the first weight of each row.

    A row has repeated layers of equal shapes and dtypes on both sides, or the states of one quantity.
    """
    order = {name: i for i, name in enumerate(names)}
    own: list[Row] = []
    weights: dict[object, list[WeightEntry]] = {}
    states: dict[tuple[str, str], list[WeightEntry]] = {}
    for name in names:
        entry, one = first[name], found[name]
        if has_other_shape(one):
            own.append(Row(name, (entry,)))
        elif quantity := quantity_of(entry):
            keys = name.split(".")
            root = ".".join(keys[: keys.index(GROUPS if GROUPS in keys else STATE) + 1])
            states.setdefault((root, quantity), []).append(entry)
        else:
            weights.setdefault(one._dtypes, []).append(entry)
    for some in weights.values():
        rows = folded(one._with_(tied_to=()) for one in some)
        own += [Row(row.pattern, tuple(first[one.name] for one in row.entries)) for row in rows]
    for (root, quantity), some in states.items():
        is_few = len(some) < _MIN_TOGETHER
        own += [Row(one.name, (one,)) for one in some] if is_few else [Row(f"{root}.*.{quantity}", tuple(some))]
    return sorted(own, key=lambda row: min(order[one.name] for one in row.entries))
