"""Weights of a comparison in rows, in which repeated layers are one, as are the states of one quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensornp.core.values.compare.compare import Comparison
from tensornp.models.comparing.states import by_quantity, quantity_of
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.outline.fold import Row, folded


def rows_of(names: Sequence[str], found: Mapping[str, Comparison], first: WeightsExplorer) -> list[Row]:
    """Return some of the names in rows, each at the place of that of its weights which comes first."""
    order = {name: i for i, name in enumerate(names)}
    alone = [name for name in names if found[name].shapes[0] != found[name].shapes[1]]
    together = [first[name] for name in found if name in order and name not in alone]
    rows = [Row(name, (first[name],)) for name in alone]
    rows += folded(one for one in together if not quantity_of(one))
    rows += by_quantity(one for one in together if quantity_of(one))
    return sorted(rows, key=lambda row: min(order[one.name] for one in row.entries))
