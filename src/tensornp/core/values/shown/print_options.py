"""Choose NumPy's print options for a card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

AUTO: Mapping[str, Any] = {"precision": "auto"}
"""Compact print options if NumPy's are at their defaults, otherwise NumPy's."""
_DEFAULTS = {"precision": 8, "suppress": False, "floatmode": "maxprec", "linewidth": 75, "formatter": None}
_COMPACT_PRECISION = 4
_COMPACT_LINEWIDTH = 100
_COMPACT_RANGE = (5e-5, 1e5)
"""Magnitudes that four digits show without an exponent; a smaller one would print as 0."""


def printing(own: Mapping[str, Any], values: Any) -> AbstractContextManager[Any]:
    """Return a context that prints the array `values` under NumPy's options, changed by those of a card."""
    chosen = _chosen(own, values)
    if not chosen:
        return nullcontext()
    # NumPy drops a formatter that is not passed on.
    return np.printoptions(**{**chosen, "formatter": np.get_printoptions()["formatter"]})


def line_width(own: Mapping[str, Any]) -> int:
    """Return the characters of a line under `own`."""
    return _COMPACT_LINEWIDTH if _is_compact(own) else int(np.get_printoptions()["linewidth"])


def _chosen(own: Mapping[str, Any], values: Any) -> dict[str, Any]:
    if own.get("precision") != "auto":
        return dict(own)
    given = {name: value for name, value in own.items() if name != "precision"}
    if not _is_compact(own):
        return given
    compact = {"precision": _COMPACT_PRECISION, "linewidth": _COMPACT_LINEWIDTH}
    return {**compact, "suppress": _is_readable_without_exponent(values), **given}


def _is_compact(own: Mapping[str, Any]) -> bool:
    now: dict[str, Any] = {**np.get_printoptions()}
    return own.get("precision") == "auto" and all(now[name] == value for name, value in _DEFAULTS.items())


def _is_readable_without_exponent(values: Any) -> bool:
    outer = _outer(values)
    # A masked array has this method; its class would import numpy.ma.
    numbers = outer.compressed() if hasattr(outer, "compressed") else outer
    if numbers.dtype.kind not in "fc":
        return False
    magnitudes = np.abs(numbers[np.isfinite(numbers)])
    nonzero = magnitudes[magnitudes > 0]
    low, high = _COMPACT_RANGE
    return not nonzero.size or (float(nonzero.min()) >= low and float(nonzero.max()) < high)


def _outer(array: Any) -> Any:
    """Return the elements that NumPy prints, or `array` itself if it prints all."""
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if not edge or math.prod(array.shape) <= options["threshold"]:
        return array
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = array.take([*range(edge), *range(size - edge, size)], axis)
    return array
