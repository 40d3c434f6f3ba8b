"""What an optimizer keeps, beside the weights of a model: by its quantities, such as "exp_avg", each a row."""

from __future__ import annotations

from collections.abc import Iterable

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.optimizers import GROUPS, STATE
from tensornp.models.outline.fold import Row

STEP = "step"
"""The quantity that counts."""
_MIN_TOGETHER = 3
"""Fewer states of a quantity are seen one by one."""


def quantity_of(entry: WeightEntry) -> str:
    """Return what a state, or an option of a group, is called by the optimizer; empty of a weight."""
    keys = entry.name.split(".")
    if not (entry.kind == "state" and STATE in keys) and GROUPS not in keys:
        return ""
    return next((key for key in reversed(keys) if not key.isdecimal()), "")


def parameter_of(entry: WeightEntry) -> str:
    """Return that a state is "of 'weight'"; empty where its optimizer does not tell, or its own name does."""
    if len(entry._saved_as or ()) < 2 or not quantity_of(entry):
        return ""
    return entry.note.partition(", ")[0]


def by_quantity(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return states in rows: of one optimizer, those of one quantity are one, under a glob that finds them."""
    groups: dict[tuple[str, str], list[WeightEntry]] = {}
    for entry in entries:
        keys, quantity = entry.name.split("."), quantity_of(entry)
        root = ".".join(keys[: keys.index(GROUPS if GROUPS in keys else STATE) + 1])
        groups.setdefault((root, quantity), []).append(entry)
    rows: list[Row] = []
    for (root, quantity), some in groups.items():
        is_few = len(some) < _MIN_TOGETHER
        rows += [Row(one.name, (one,)) for one in some] if is_few else [Row(f"{root}.*.{quantity}", tuple(some))]
    return rows
