"""Conjugate and negative bits, which torch saves next to the elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensornp.models.reading.codec import Codec
from tensornp.models.reading.take import Array, Ranges

_SIGNS = {"bfloat16": (0, 0x8000), "complex32": (0x80000000, 0x80008000)}
"""Bits that conjugate an element, and bits that negate it, of dtypes that NumPy lacks."""


class LazyBits(NamedTuple):
    """Whether elements are meant conjugated, and whether negated."""

    is_conj: bool = False
    is_neg: bool = False


AS_STORED = LazyBits()


def why_not_applied(lazy: LazyBits, name: str) -> str:
    """Return why elements of dtype `name` cannot be negated; empty if they can."""
    is_number = name.startswith(("int", "uint", "complex")) or name in ("float16", "float32", "float64", "bfloat16")
    return f"its {name} elements are meant negated, which is not read" if lazy.is_neg and not is_number else ""


def applied(bits: Array, name: str, lazy: LazyBits) -> Array:
    """Return elements of dtype `name` with their signs, as bits of the same kind."""
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
    is_elementwise = True

    @property
    def dtype(self) -> str:
        """The same dtype."""
        return self.own

    def __call__(self, stored: Array, ranges: Ranges, *numbers: Array) -> Array:
        """Return the elements with their signs."""
        return applied(stored, self.own, self.lazy)
