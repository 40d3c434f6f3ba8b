"""Define codecs: functions from stored elements to their meaning, such as lazy signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensornp.models.reading.take import Array, Ranges

VALUES = "float32"
"""The dtype of decoded codes."""


class Codec:
    """A function from stored elements to their meaning, for any box; equal ones decode equal bits alike.

    Attributes
    ----------
    dtype : str
        The dtype of the result.
    quantized : str
        The quantized dtype of torch for such codes, if there is one.
    is_elementwise : bool
        Whether equal elements mean the same at every index.
    packing : tuple of int or None
        Elements and bytes of each block, if the last dimension is packed into blocks.
    """

    __slots__ = ()
    dtype: Any = VALUES
    quantized: Any = ""
    is_elementwise: Any = False
    packing: Any = None

    def beside(self, ranges: Ranges) -> list[tuple[Any, Any]]:
        """Return the values in files that elements in `ranges` also need, each with an index."""
        return []

    def __call__(self, stored: Array, ranges: Ranges, *numbers: Array) -> Array:
        """Return the meaning of the elements in `ranges`, by the `numbers` of `beside`.

        NoDataError, in words that follow a name, if they mean nothing.
        """
        raise NotImplementedError


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
