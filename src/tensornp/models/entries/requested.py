"""Look weights up, or compute them, at each request, so that no row holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensornp.errors import CopyRequiredError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import Again, Called, Source

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats


class Requested(Source):
    """Values of a weight that `get` returns anew for each request.

    Parameters
    ----------
    get : callable
        Returns the weight in memory; raises NoDataError if there is none.
    is_computed : bool
        Whether the weight is made for the request, so that its values are always copied.
    lookup : Again, optional
        How rows that hold no object find the weight.
    """

    __slots__ = ("_get", "_is_computed", "_lookup", "identity", "location", "requires_grad")
    location: str
    identity: object
    requires_grad: bool | None

    def __init__(
        self, get: Callable[[Called], WeightEntry], location: str, requires_grad: bool | None, *,
        is_computed: bool = False, lookup: Again | None = None, identity: object = None,
    ) -> None:  # fmt: skip
        self._get, self.location, self.requires_grad = get, location, requires_grad
        self._is_computed, self._lookup, self.identity = is_computed, lookup, identity or id(self)

    def again(self, called: Called, kind: str) -> Again | None:
        """Return how to look the weight up again."""
        return self._lookup

    def found(self, called: Called) -> WeightEntry:
        """Return the weight with its tensor; NoDataError if it has none."""
        found = self._get(called)
        found._check_readable()
        return found

    def plan(self, called: Called, index: Any) -> Any:
        """Return the plan of `to_numpy`."""
        found: Any = self.found(called)._source
        return found.plan(called, index, copy=True) if self._is_computed else found.plan(called, index)

    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index`; a copy if they are computed."""
        if self._is_computed and copy is False:
            raise CopyRequiredError(f"the values of {called.shown} are computed at each request; leave copy=False out")
        copy = True if self._is_computed else copy
        return self.found(called)._source.to_numpy(called, index, copy=copy, writeable=writeable, dtype=dtype)

    def values(self, called: Called) -> Any:
        """Return the tensor."""
        return self.found(called)._source.values(called)

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of the tensor."""
        return self.found(called).stats()


def reached(entry: WeightEntry) -> WeightEntry:
    """Return a weight with its tensor, found again; NoDataError if it is gone."""
    source = entry._source
    if not isinstance(source, Requested) or source.again(entry._called, entry.kind) is not None:
        return entry
    found = source._get(entry._called)
    return entry._with_(_source=found._source, nbytes=found.nbytes, problem=found.problem)
