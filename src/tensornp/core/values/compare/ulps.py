"""By how many representable numbers floats differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import resolve
from tensornp.core.values.stats.figures import scratch

Array = np.ndarray[Any, Any]


def most_ulps(a: Array, b: Array, name: str) -> int:
    """Return by how many representable numbers of the dtype `name` two differ at most."""
    dtype = resolve(name)
    if name == "float8_e8m0fnu":
        # Powers of two alone, without a sign.
        codes = [np.frexp(values)[1] for values in (a, b)]
        return int(np.abs(codes[0] - codes[1]).max(initial=0))
    if a.dtype != dtype:
        # The leading half of a float32 is a bfloat16; what else is short is made of it anew.
        a, b = (values.astype(dtype) for values in (a, b))
    kind = np.dtype(f"i{dtype.itemsize}")
    bits_a, bits_b = (np.ascontiguousarray(values).view(kind) for values in (a, b))
    distance = np.subtract(bits_a, bits_b, out=scratch(a.size, 0, kind))
    # On two sides of zero the bits count in two directions, and their difference may need more of them.
    crossing = np.flatnonzero((bits_a ^ bits_b) < 0)
    distance[crossing] = 0
    near = max(int(distance.max()), -int(distance.min())) if distance.size else 0
    if not crossing.size:
        return near
    low, high = (_ordinals(bits[crossing]).astype(np.float64) for bits in (bits_a, bits_b))
    at = crossing[int(np.abs(low - high).argmax())]
    return max(near, abs(int(_ordinals(bits_a[at : at + 1])[0]) - int(_ordinals(bits_b[at : at + 1])[0])))


def _ordinals(bits: Array) -> Array:
    """Return the place of each float among all of its dtype, in order; both zeros are 0."""
    sign = bits >> bits.dtype.type(8 * bits.itemsize - 1)
    places: Array = (bits ^ (sign & np.iinfo(bits.dtype).max)) - sign
    return places
