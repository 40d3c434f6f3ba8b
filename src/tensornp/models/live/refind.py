"""Weights that hold no tensor: each is made again, or found by its expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.namespace.lookup import look_up
from tensornp.errors import BadRequestError, CopyRequiredError, NoDataError
from tensornp.models.entries.entry import Source, WeightEntry
from tensornp.models.entries.in_memory import ArraySource, TensorSource, array_weight, weight_of
from tensornp.models.explorer import WeightsExplorer


class Requested(Source):
    """Values of a weight that `get` returns at each request, so that no row holds them.

    A weight that a module computes has a `holder`, the expression of the module, and `again`, which returns the weight
    for the module; its values are always copied.
    """

    __slots__ = ("again", "get", "holder", "identity", "location", "requires_grad")
    identity: object

    def __init__(
        self, get: Callable[[], Any], location: str, requires_grad: bool | None, *, identity: object = None,
        holder: str = "", again: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.get, self.location, self.requires_grad = get, location, requires_grad
        self.identity, self.holder, self.again = identity or id(self), holder, again

    def _found(self) -> Any:
        found = self.get()
        found._check_readable()
        return found._source

    def plan(self, index: Any) -> Any:
        return self._found().plan(index, copy=True) if self.again else self._found().plan(index)

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        if self.again and copy is False:
            raise CopyRequiredError("the values are computed at each request; leave copy=False out")
        return self._found().to_numpy(index, copy=True if self.again else copy, writeable=writeable, dtype=dtype)

    def values(self) -> Any:
        return self._found().values()


def released_rows(explorer: WeightsExplorer, namespace: Mapping[str, Any], opened: str) -> list[WeightEntry]:
    """Return the weights as rows that hold no tensor; `opened` is the name of the explorer, or empty."""
    return [released(row, partial(_found, row.name, row.code, namespace, opened)) for row in explorer.values()]


def released(row: WeightEntry, find: Callable[[str], Any]) -> WeightEntry:
    """Return a row that holds no tensor; `find` returns the object of an expression at each request."""
    source, name, kind, code = row._source, row.name, row.kind, row.code
    # Nothing below may hold the tensor of the row.
    expression, again = code, None
    if isinstance(source, Requested):
        expression, again = source.holder, source.again
    elif isinstance(source, ArraySource):
        again = lambda found: array_weight(name, found, code) if is_array(found) else None  # noqa: E731
    elif isinstance(source, TensorSource):
        again = lambda found: weight_of(name, kind, found, code)  # noqa: E731
    if again is None:
        return row
    shape, dtype = row.shape, row.dtype

    def get() -> WeightEntry:
        there = find(expression)
        found: WeightEntry | None = again(there) if there is not None else None
        if found is None:
            raise NoDataError(f"{code or name} reaches no weight any more; show them again")
        if (found.shape, found.dtype) != (shape, dtype):
            raise NoDataError(f"{code or name} is {found.dtype} of shape {found.shape} by now; show them again")
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


def reached(entry: WeightEntry) -> WeightEntry:
    """Return a weight with its tensor, found again; NoDataError if it is gone."""
    source = entry._source
    if not isinstance(source, Requested) or source.again:
        return entry
    found: WeightEntry = source.get()
    return entry._with_(_source=found._source, nbytes=found.nbytes, problem=found.problem)
