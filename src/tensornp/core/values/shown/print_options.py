"""Choose NumPy's print options for a card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

AUTO: Mapping[str, Any] = {"precision": "auto"}
"""Compact print options if NumPy's are at their defaults, otherwise NumPy's."""
_DEFAULTS: dict[str, Any] = {
    "precision": 8, "suppress": False, "floatmode": "maxprec", "linewidth": 75,
    "formatter": None, "override_repr": None,
}  # fmt: skip
_COMPACT_PRECISION = 4
_COMPACT_LINEWIDTH = 100
_COMPACT_RANGE = (1e-5, 1e5)
"""Largest magnitudes of an array that is printed without an exponent."""


def printing(own: Mapping[str, Any], values: Any) -> AbstractContextManager[Any]:
    chosen = dict(own)
    if own.get("precision") == "auto":
        now: Mapping[str, Any] = dict(np.get_printoptions())
        is_default = all([now.get(name) == value for name, value in _DEFAULTS.items()])
        compact = {"linewidth": _COMPACT_LINEWIDTH, **_digits_for(values)} if is_default else {}
        chosen = compact | {name: value for name, value in own.items() if name != "precision"}
    if not chosen:
        return nullcontext()
    # NumPy drops a formatter that is not passed on.
    return np.printoptions(**{**chosen, "formatter": np.get_printoptions()["formatter"]})


def _digits_for(values: Any) -> dict[str, Any]:
    """Return the precision, with more digits below 0.1, and whether numbers have no exponent."""
    options = np.get_printoptions()
    is_whole = math.prod(values.shape) <= options["threshold"] or not options["edgeitems"]
    outer = values if is_whole else values[np.ix_(*places_of(values.shape, options["edgeitems"]))]
    # A masked array has this method; its class would import numpy.ma.
    numbers = outer.compressed() if hasattr(outer, "compressed") else outer
    if numbers.dtype.kind not in "fc":
        return {"precision": _COMPACT_PRECISION}
    magnitudes = np.abs(numbers[np.isfinite(numbers)])
    nonzero = magnitudes[magnitudes > 0]
    if not nonzero.size:
        return {"precision": _COMPACT_PRECISION, "suppress": True}
    least, largest = float(nonzero.min()), float(nonzero.max())
    low, high = _COMPACT_RANGE
    precision = _COMPACT_PRECISION + max(-math.floor(math.log10(largest)) - 1, 0)
    # An element that would print as 0 keeps its exponent.
    if low <= largest < high and least >= 0.5 * 10.0**-precision:
        return {"precision": precision, "suppress": True}
    return {"precision": _COMPACT_PRECISION}


def places_of(shape: tuple[int, ...], edgeitems: int = 0) -> list[list[int]]:
    """Return the indices of the outer elements along each dimension, with one for the ellipsis; all if 0."""
    return [
        [*range(edgeitems), 0, *range(size - edgeitems, size)] if edgeitems and size > 2 * edgeitems else [*range(size)]
        for size in shape
    ]
