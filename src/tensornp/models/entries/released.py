"""Rows of weights that hold no tensor, and find it again at each request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tensornp.errors import NoDataError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.source import Again, Called, Source

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats


class Find(ABC):
    """Evaluates an expression; raises NoDataError if it reaches no object."""

    @property
    def note(self) -> str:
        """The note of weights that no expression reaches; empty for others."""
        return ""

    @property
    def is_itself(self) -> bool:
        """Return whether calls return the object itself, which has the gradient."""
        return True

    @abstractmethod
    def __call__(self, expression: str) -> Any:
        """Return the object, None if the name is now registered as None."""


def released(entry: WeightEntry, find: Find) -> WeightEntry:
    """Return the same weight without its tensor; `find` gives it at each request."""
    again = entry._source.again(entry._called, entry.kind)
    return entry._with_(_source=Released(entry, again, find)) if again is not None else entry


def reached(entry: WeightEntry) -> WeightEntry:
    """Return a weight with its tensor, found again; NoDataError if it is gone."""
    if not isinstance(entry._source, Released):
        return entry
    found, only_here = entry._source.found(entry._called), entry._source.note
    now = entry._with_(_source=found._source, nbytes=found.nbytes, problem=found.problem)
    return noted(now._with_(code=""), only_here, first=False) if only_here else now


class Released(Source):
    """Finds a tensor of the same shape and dtype again at each request."""

    __slots__ = ("_again", "_dtype", "_find", "_location", "_requires_grad", "_shape")

    def __init__(self, entry: WeightEntry, again: Again, find: Find) -> None:
        self._again, self._find = again, find
        self._shape, self._dtype = entry.shape, entry.dtype
        self._location, self._requires_grad = entry.location, entry.requires_grad

    @property
    def location(self) -> str:
        """The device."""
        return self._location

    @property
    def requires_grad(self) -> bool | None:
        """The value at the time of listing."""
        return self._requires_grad

    @property
    def note(self) -> str:
        """The note of a weight that no expression reaches; empty for others."""
        return self._find.note

    @property
    def is_itself(self) -> bool:
        """Return whether the found tensor is the weight itself, not an alias."""
        return self._find.is_itself

    def found(self, called: Called) -> WeightEntry:
        """Return the current entry of the weight; NoDataError if it is gone or another."""
        said = called.code or called.name
        there = self._find(self._again.expression)
        if there is None:
            raise NoDataError(f"{said} is None by now; show them again")
        found: WeightEntry | None = self._again.make(there)
        if found is None:
            raise NoDataError(f"{said} reaches no weight any more; show them again")
        if (found.shape, found.dtype) != (self._shape, self._dtype):
            raise NoDataError(f"{said} is {found.dtype} of shape {found.shape} by now; show them again")
        return found

    def _source(self, called: Called) -> Source:
        found = self.found(called)
        found._check_readable()
        return found._source

    def plan(self, called: Called, index: Any) -> Any:
        """Return the plan of `to_numpy` for the found tensor."""
        return self._source(called).plan(called, index)

    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index` of the found tensor."""
        return self._source(called).to_numpy(called, index, copy=copy, writeable=writeable, dtype=dtype)

    def values(self, called: Called) -> Any:
        """Return the found tensor."""
        return self._source(called).values(called)

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of the found tensor."""
        return self._source(called).stats(called)
