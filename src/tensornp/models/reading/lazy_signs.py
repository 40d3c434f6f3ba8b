"""Signs that torch has not applied yet: it saves elements as they lie, and besides, that they are meant otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensornp.models.reading.codec import Codec
from tensornp.models.reading.selection import Array, Ranges

_SIGNS = {"bfloat16": (0, 0x8000), "complex32": (0x80000000, 0x80008000)}
"""Of those that NumPy lacks, the bits of an element that conjugate it, and those that negate it."""


class LazyBits(NamedTuple):
    """Whether the elements are meant conjugated, and whether negated."""

    is_conj: bool = False
    is_neg: bool = False


AS_STORED = LazyBits()


def why_not_applied(lazy: LazyBits, name: str) -> str:
    """Return why elements of dtype `name` are not read as they are meant; empty where they can be."""
    is_number = name.startswith(("int", "uint", "complex")) or name in ("float16", "float32", "float64", "bfloat16")
    return f"its {name} elements are meant negated, which is not read" if lazy.is_neg and not is_number else ""


def applied(bits: Array, name: str, lazy: LazyBits) -> Array:
    """Return elements of dtype `name` as they are meant, as bits of the same kind."""
    if name in _SIGNS:
        conj, neg = _SIGNS[name]
        flipped = conj * lazy.is_conj ^ neg * lazy.is_neg
        return bits ^ bits.dtype.type(flipped) if flipped else bits
    made = np.conjugate(bits) if lazy.is_conj and bits.dtype.kind == "c" else bits
    return np.asarray(np.negative(made) if lazy.is_neg else made)


@dataclass(frozen=True, slots=True)
class LazySigns(Codec):
    """Applies the signs to elements of the dtype `own`."""

    own: str
    lazy: LazyBits

    @property
    def dtype(self) -> str:
        """The same dtype."""
        return self.own

    @property
    def is_elementwise(self) -> bool:
        """Return True."""
        return True

    def decode(self, stored: Array, ranges: Ranges, beside: Sequence[Array]) -> Array:
        """Return the elements as they are meant, as bits of the same kind."""
        return applied(stored, self.own, self.lazy)
