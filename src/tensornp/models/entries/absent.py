"""A name without a tensor: what is registered as None, or what a file lists and does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import NoDataError
from tensornp.models.entries.entry import Extent, WeightEntry
from tensornp.models.names.quoted import MAX_TOLD, cut, shown_name


class NothingEntry(WeightEntry):
    """A name that has no values, and `problem` says why."""

    __slots__ = ("_location",)
    requires_grad = None
    extents: tuple[Extent, ...] = ()

    def __init__(self, name: str, kind: str, code: str, problem: str, location: str = "") -> None:
        super().__init__(name, kind, None, "", 0, code)
        self.problem, self._location = problem, location

    @property
    def is_nothing(self) -> bool:
        """Whether nothing should have it: no file, and no optimizer."""
        return not self._location

    @property
    def is_pending(self) -> bool:
        """Whether it is the state of a parameter that an optimizer has not stepped yet, or keeps nothing of."""
        return self.kind == "state"

    @property
    def location(self) -> str:
        """The file that should have it, the device of a parameter without state, or nothing."""
        return self._location

    def to_numpy(self, index: Any = ..., **_: Any) -> NoReturn:
        """Raise NoDataError."""
        raise NoDataError(f"{shown_name(self.name)} has no values to read: {cut(self.problem, MAX_TOLD)}")

    def values(self) -> NoReturn:
        """Raise NoDataError."""
        self.to_numpy()

    def plan(self, index: Any = ...) -> NoReturn:
        """Raise NoDataError."""
        self.to_numpy(index)

    def stats(self) -> TensorStats:
        """Raise NoDataError."""
        self.to_numpy()
