"""What is compared as a whole in a way of its own, as a pass that was followed is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeGuard, TypeVar

Found = TypeVar("Found")


class Comparable(ABC, Generic[Found]):
    """What another one of its class can be compared with."""

    @abstractmethod
    def _compared_with(self, other: Any) -> Found:
        """Return what differs; raises BadRequestError for what is not of its class."""


def is_comparable(obj: Any) -> TypeGuard[Comparable[Any]]:
    """Return whether `obj` is compared in a way of its own, by its type alone."""
    return issubclass(type(obj), Comparable)
