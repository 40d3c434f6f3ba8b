"""Count the representable numbers between floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import resolve

Array = np.ndarray[Any, Any]


def most_ulps(a: Array, b: Array, name: str) -> int:
    """Return the largest distance of two blocks of finite floats, in representable numbers of the dtype `name`."""
    dtype = resolve(name)
    if name == "float8_e8m0fnu":
        # Powers of two without a sign.
        exponents = [np.frexp(values)[1] for values in (a, b)]
        return int(np.abs(exponents[0] - exponents[1]).max(initial=0))
    if dtype.itemsize < 8:
        places = [_places(values.astype(dtype, copy=False)).astype(np.int64) for values in (a, b)]
        return int(np.abs(places[0] - places[1]).max(initial=0))
    first, second = _places(a), _places(b)
    # The distance of two float64 numbers fits 64 bits without a sign.
    return int(np.where(first >= second, first - second, second - first).view(np.uint64).max(initial=0))


def _places(values: Array) -> Array:
    """Return the place of each float among all of its dtype, in order; both zeros are 0."""
    bits = np.ascontiguousarray(values).view(f"i{values.itemsize}")
    sign = bits >> bits.dtype.type(8 * bits.itemsize - 1)
    places: Array = (bits ^ (sign & np.iinfo(bits.dtype).max)) - sign
    return places
