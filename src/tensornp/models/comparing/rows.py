"""Weights of a comparison in rows, in which repeated layers are one, as are the states of one quantity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensornp.core.values.compare.compare import Comparison
from tensornp.models.comparing.states import by_quantity, quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.outline.fold import Row, folded


def all_rows(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return all weights in rows: a layer is like another one whichever of its weights have moved, or are tied."""
    every = {one.name: one for one in entries}
    alike = (one._with_(tied_to=(), related=()) for one in every.values())
    return [row._replace(entries=tuple(every[one.name] for one in row.entries)) for row in folded(alike)]


def rows_of(
    names: Sequence[str], rows: Sequence[Row], found: Mapping[str, Comparison], first: Mapping[str, WeightEntry]
) -> list[Row]:
    """Return some of the names in rows, each at the place of that of its weights which comes first.

    `rows` are those of all weights of one shape on both sides, states of optimizers aside. How a layer is unlike the
    others is said in the first of its rows.
    """
    order = {name: i for i, name in enumerate(names)}

    def place(row: Row) -> int:
        return min(order.get(one.name, len(order)) for one in row.entries)

    own: list[Row] = []
    told: set[str] = set()
    for row in sorted(rows, key=place):
        some = list(_of_some(row._replace(unlike="") if row.unlike in told else row, order, found))
        told.update(row.unlike for _ in some)
        own += some
    own += [Row(name, (first[name],)) for name in names if has_other_shape(found[name])]
    states = (first[name] for name in found if name in order and not has_other_shape(found[name]))
    own += by_quantity(one for one in states if quantity_of(one))
    return sorted(own, key=place)


def has_other_shape(found: Comparison) -> bool:
    """Return whether a weight has another shape on the other side."""
    return found._shapes[0] != found._shapes[1]


def _of_some(row: Row, names: Mapping[str, int], found: Mapping[str, Comparison]) -> Iterator[Row]:
    """Yield a row of those of its weights that are among the names, which says how many of all these are."""
    some = tuple(one for one in row.entries if one.name in names)
    if len(some) == len(row.entries):
        yield row
    elif some:
        alone = folded(one._with_(tied_to=(), related=()) for one in some)
        pattern = alone[0].pattern if len(alone) == 1 else row.pattern
        done = "did not move" if found[some[0].name].equal else "moved"
        part = f"{len(some):,} of {len(row.entries):,} {done}"
        yield Row(pattern, some, ", ".join(filter(None, (row.unlike, part))))
