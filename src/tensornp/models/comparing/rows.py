"""Put the weights of a comparison in rows; repeated layers are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def by_quantity(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return states in rows, one for each quantity, under a matching glob."""
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


def all_rows(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return all weights in rows of repeated layers, without changes and ties."""
    every = {one.name: one for one in entries}
    alike = (one._with_(tied_to=(), related=()) for one in every.values())
    return [Row(row.pattern, tuple(every[one.name] for one in row.entries)) for row in folded(alike)]


def rows_of(
    names: Sequence[str], rows: Sequence[Row], found: Mapping[str, Comparison], first: Mapping[str, WeightEntry]
) -> list[Row]:
    """Return some names in rows, sorted by the first weight of each row.

    `rows` hold all weights with equal shapes on both sides, without states of optimizers. Weights whose dtypes differ
    on one side are in separate rows.
    """
    order = {name: i for i, name in enumerate(names)}

    def place(row: Row) -> int:
        return min(order.get(one.name, len(order)) for one in row.entries)

    own: list[Row] = []
    for row in rows:
        by_dtypes: dict[object, list[WeightEntry]] = {}
        for one in row.entries:
            by_dtypes.setdefault(found[one.name]._dtypes if one.name in found else None, []).append(one)
        for some in by_dtypes.values():
            own += _of_some(_under_one_name(row, some), order, found)
    own += [Row(name, (first[name],)) for name in names if has_other_shape(found[name])]
    states = (first[name] for name in found if name in order and not has_other_shape(found[name]))
    own += by_quantity(one for one in states if quantity_of(one))
    return sorted(own, key=place)


def has_other_shape(found: Comparison) -> bool:
    """Return whether a weight has another shape on the other side."""
    return found._shapes[0] != found._shapes[1]


def _of_some(row: Row, names: Mapping[str, int], found: Mapping[str, Comparison]) -> Iterator[Row]:
    """Yield a row of the weights in `names`, with their number in all."""
    some = tuple(one for one in row.entries if one.name in names)
    if len(some) == len(row.entries):
        yield row
    elif some:
        done = "did not move" if found[some[0].name].equal else "moved"
        yield _under_one_name(row, some)._replace(unlike=f"{len(some):,} of {len(row.entries):,} {done}")


def _under_one_name(row: Row, some: Sequence[WeightEntry]) -> Row:
    """Return some weights of a row as a row, under their own pattern if possible."""
    if len(some) == len(row.entries):
        return row
    alone = folded(one._with_(tied_to=(), related=()) for one in some)
    return Row(alone[0].pattern if len(alone) == 1 else row.pattern, tuple(some))
