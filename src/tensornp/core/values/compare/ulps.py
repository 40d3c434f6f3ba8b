"""Count the representable numbers between floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import resolve

Array = np.ndarray[Any, Any]


def most_ulps(a: Array, b: Array, name: str) -> int:
    """Return the largest distance of two blocks, in representable numbers of the dtype `name`."""
    dtype = resolve(name)
    if name == "float8_e8m0fnu":
        # Powers of two without a sign.
        exponents = [np.frexp(values)[1] for values in (a, b)]
        return int(np.abs(exponents[0] - exponents[1]).max(initial=0))
    kind = np.dtype(f"i{dtype.itemsize}")
    first, second = (np.ascontiguousarray(values, dtype).view(kind) for values in (a, b))
    # On two sides of zero, bits count in two directions, and the distance may need more of them.
    crossing = np.flatnonzero((first ^ second) < 0)
    distances = first - second
    distances[crossing] = 0
    most = max(int(distances.max(initial=0)), -int(distances.min(initial=0)))
    if not len(crossing):
        return most
    across = _places(first[crossing]).astype(np.float64) - _places(second[crossing])
    at = crossing[int(np.abs(across).argmax())]
    return max(most, abs(int(_places(first[at : at + 1])[0]) - int(_places(second[at : at + 1])[0])))


def _places(bits: Array) -> Array:
    """Return the place of each float among all of its dtype, in order; both zeros are 0."""
    sign = bits >> bits.dtype.type(8 * bits.itemsize - 1)
    places: Array = (bits ^ (sign & np.iinfo(bits.dtype).max)) - sign
    return places
