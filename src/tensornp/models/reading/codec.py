"""`Codec`: one step from what a file stores to what is meant, as a chain of them stands behind a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensornp.models.reading.selection import Array, Ranges, Shape

VALUES = "float32"
"""The dtype of what codes mean."""


class Codec(ABC):
    """Makes elements of stored ones, for any box of a tensor; it opens no file, and knows no name.

    Each is a frozen dataclass: what is equal makes equal values of equal bytes.
    """

    __slots__ = ()

    @property
    def dtype(self) -> str:
        """The dtype of what it makes: of codes, that of what they mean."""
        return VALUES

    @property
    def quantized(self) -> str:
        """The quantized dtype of torch that a tensor of such codes has; empty where there is none."""
        return ""

    @property
    def is_elementwise(self) -> bool:
        """Whether equal elements mean the same wherever they stand, so that no ranges are told."""
        return False

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


class Route(NamedTuple):
    """How the elements in some ranges come about: `levels` are what each codec makes, and first what is stored."""

    levels: tuple[Ranges, ...]

    @classmethod
    def of(cls, ranges: Ranges, codecs: Sequence[Codec]) -> Route:
        """Return the route to elements, which each codec makes of those that it needs."""
        levels = [ranges]
        for codec in reversed(codecs):
            levels.append(codec.needs(levels[-1]))
        return cls(tuple(levels[::-1]))

    @property
    def stored(self) -> Ranges:
        """What is read."""
        return self.levels[0]

    def beside(self, codecs: Sequence[Codec]) -> Iterator[tuple[Any, Any]]:
        """Yield each source besides, with the index that is read of it; of nothing, nothing is needed."""
        for codec, ranges in zip(codecs, self.levels[1:], strict=True):
            if all(one.num for one in ranges):
                yield from zip(codec.sources, codec.beside(ranges), strict=False)

    def decoded(self, stored: Array, codecs: Sequence[Codec], read: Callable[[Any, Any], Array]) -> Array:
        """Return what the codecs make of stored elements; `read` brings the numbers of a source at an index."""
        made = stored
        for codec, ranges in zip(codecs, self.levels[1:], strict=True):
            is_any = bool(made.size)
            beside = [read(*one) for one in zip(codec.sources, codec.beside(ranges), strict=False)] if is_any else []
            made = codec.decode(made, ranges, beside)
        return made
