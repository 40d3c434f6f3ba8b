"""Rows of weights that hold no tensor: each is found again by its expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tensornp.core.namespace.lookup import look_up
from tensornp.errors import BadRequestError, NoDataError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.requested import Requested
from tensornp.models.entries.source import Called
from tensornp.models.explorer import WeightsExplorer


def released_rows(explorer: WeightsExplorer, namespace: Mapping[str, Any], opened: str) -> list[WeightEntry]:
    """Return the weights as rows that hold no tensor; `opened` is the name of the explorer, or empty."""
    return [released(row, partial(_found, row.name, row.code, namespace, opened)) for row in explorer.values()]


def released(row: WeightEntry, find: Callable[[str], Any]) -> WeightEntry:
    """Return a row that holds no tensor; `find` returns the object of an expression at each request."""
    lookup = row._source.again(row._called, row.kind)
    if lookup is None:
        return row
    shape, dtype = row.shape, row.dtype

    def get(called: Called) -> WeightEntry:
        there, said = find(lookup.expression), called.code or called.name
        found: WeightEntry | None = lookup.make(there) if there is not None else None
        if found is None:
            raise NoDataError(f"{said} reaches no weight any more; show them again")
        if (found.shape, found.dtype) != (shape, dtype):
            raise NoDataError(f"{said} is {found.dtype} of shape {found.shape} by now; show them again")
        return found

    return row._with_(_source=Requested(get, row.location, row.requires_grad))


def _found(name: str, code: str, namespace: Mapping[str, Any], opened: str, expression: str) -> Any:
    """Return the object of an expression, or the tensor of the row in the explorer."""
    try:
        return look_up(expression, namespace)
    except BadRequestError:
        explorer = namespace.get(opened)
    row = explorer.get(name) if isinstance(explorer, WeightsExplorer) else None
    if not isinstance(row, WeightEntry) or row.code != code or row.tensor is None:
        cure = "assign the model to a name, and run %weights on that"
        raise NoDataError(f"{expression or name} reaches no weight any more; {cure}")
    return row.tensor
