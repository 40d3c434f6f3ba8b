"""`Codec`: one step from what a file stores to what is meant, as a chain of them stands behind a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensornp.models.reading.selection import Array, Ranges, Shape


class Codec(ABC):
    """Makes elements of stored ones, for any box of a tensor; it opens no file, and knows no name.

    Each is a frozen dataclass: what is equal makes equal values of equal bytes.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The dtype of what it makes."""

    @property
    def quantized(self) -> str:
        """The quantized dtype of torch that a tensor of such codes has; empty where there is none."""
        return ""

    @property
    def is_elementwise(self) -> bool:
        """Whether equal elements mean the same wherever they stand, so that no ranges are told."""
        return True

    @property
    def sources(self) -> tuple[Any, ...]:
        """The values in files that it takes besides."""
        return ()

    def stored(self, shape: Shape) -> tuple[Shape, np.dtype[Any]] | None:
        """Return what lies in the file where `shape` is meant; None where it is elements of the same shape."""
        return None

    def needs(self, ranges: Ranges) -> Ranges:
        """Return which of the stored elements the wanted ones take."""
        return ranges

    def beside(self, ranges: Ranges) -> tuple[Any, ...]:
        """Return the index that the wanted elements take of each of `sources`."""
        return ()

    @abstractmethod
    def decode(self, stored: Array, ranges: Ranges, beside: Sequence[Array]) -> Array:
        """Return the elements in `ranges` of those that they need, and of the numbers of `sources`.

        NoDataError, in words that follow a name, where they mean nothing.
        """
