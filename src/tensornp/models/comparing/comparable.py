"""What is compared as a whole in a way of its own, as a pass that was followed is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeGuard

from tensornp.core.lowlevel.attributes import is_subclass


class Comparable(ABC):
    """What another one of its class can be compared with."""

    @abstractmethod
    def compared_with(self, other: Any) -> Any:
        """Return what differs; raises BadRequestError for what is not of its class."""


def is_comparable(obj: Any) -> TypeGuard[Comparable]:
    """Return whether `obj` is compared in a way of its own, by its type alone."""
    return is_subclass(type(obj), Comparable)
