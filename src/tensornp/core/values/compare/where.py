"""Where nearly all of a change lies: in one element, in some rows or columns, or spread over all; by shares of |Δ|²."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.strides import contiguous
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.compare.numbers import Array, sizes_of_change
from tensornp.core.values.reading.supply import supply_of

Index = tuple[int, ...]
Sums = Sequence[Array | None]
"""For each axis the sum of |Δ|² at each of its indices; None for one of too many."""
NEARLY_ALL, MOST = 0.9, 0.5
"""The shares of all |Δ|² that are nearly all of a change, and most of it."""
FEW = 0.5
"""The share of the indices of an axis up to which these are named."""
MAX_SIZE = 2**20
"""Indices of an axis that are looked at."""
SPREAD = "spread over all"
_NOUNS = {1: [("element", "elements")], 2: [("row", "rows"), ("column", "columns")]}
_WORDS = {NEARLY_ALL: "nearly all of it", MOST: "most of it"}


def element_with_nearly_all(found: Comparison) -> Index | None:
    """Return the index of the element that has nearly all of a change of several; None where there is none such."""
    norm, largest = found._norm_of_difference, found.max_abs
    if norm and largest and largest**2 > NEARLY_ALL * norm**2 and found._num_changed > 1:
        return found._largest_difference
    return None


def element_text(index: Index) -> str:
    """Return that nearly all of a change lies in one element."""
    return f"nearly all of it in one element {list(index)}"


def where_text(sums: Sums) -> str:
    """Return where nearly all of a change lies, or most of it, such as "nearly all of it in rows 0 to 15 of 128".

    What is named has so much of all |Δ|², and on each axis that is named it is half of the indices at most. Empty where
    nothing has changed, and where an axis of too many indices might have been named.
    """
    known = {axis: own for axis, own in enumerate(sums) if own is not None}
    if not known or not next(iter(known.values())).sum() > 0:
        return ""
    for share, words in _WORDS.items():
        named = _named(share, known)
        if named and all(len(named.get(axis, ())) == 1 for axis, own in enumerate(sums) if own is None or len(own) > 1):
            place = [int(named[axis][0]) if axis in named else 0 for axis in range(len(sums))]
            return f"{words} in one element {place}"
        if named:
            parts = (_axis_text(axis, at, len(known[axis]), len(sums)) for axis, at in named.items())
            return f"{words} in {', '.join(parts)}"
    return SPREAD if len(known) == len(sums) else ""


def _named(share: float, sums: Mapping[int, Array]) -> dict[int, Array]:
    """Return the indices of some axes that have this share of all together, or those of the best axis alone."""
    num_axes = sum(len(own) > 1 for own in sums.values())
    # What is outside on one axis may be inside on all others: together they leave out what one alone may.
    for level in (1 - (1 - share) / max(num_axes, 1), share):
        named = {axis: indices_with(level, own) for axis, own in sums.items()}
        named = {axis: at for axis, at in named.items() if len(at) <= FEW * len(sums[axis])}
        if named and level > share:
            return named
    best = min(named, key=lambda axis: len(named[axis]) / len(sums[axis]), default=None)
    return {} if best is None else {best: named[best]}


def indices_with(level: float, sums: Array) -> Array:
    """Return the fewest indices with this share of a sum, and each other that has half as much as the least of them.

    So a block is named whole, though some of its rows would do.
    """
    order = np.argsort(-sums, kind="stable")
    shares = np.cumsum(sums[order])
    least = sums[order[np.searchsorted(shares, level * shares[-1])]]
    return np.flatnonzero(sums >= max(least / 2, np.finfo(float).tiny))


def _axis_text(axis: int, at: Array, size: int, ndim: int) -> str:
    one, several = _NOUNS[ndim][axis] if ndim in _NOUNS else ("index", "indices")
    on = "" if ndim in _NOUNS else f" on axis {axis}"
    first, last = int(at[0]), int(at[-1])
    if first == last:
        return f"{one} {first:,}{on}"
    # One that is left out of few tells less than where these are.
    if last - first + 1 <= min(2 * len(at), FEW * size):
        return f"{several} {first:,} to {last:,} of {size:,}{on}"
    return f"{len(at):,} of {size:,} {several}{on}"


@outside_modes
@np.errstate(all="ignore")
def sums_by_axis(a: Any, b: Any, is_wanted: Callable[[], bool] = lambda: True) -> Sums:
    """Return for each axis the sums of |Δ|² over the largest one, of what is finite on both sides, of two of one shape.

    Reads both once, block by block, as `compare` does; nothing more where it is no longer wanted. Raises as `compare`.
    """
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    sums: list[Array | None] = [np.zeros(size) if size <= MAX_SIZE else None for size in first.shape]
    scale, start = 0.0, 0
    for values_a, values_b in pairs_of(first, second):
        if not is_wanted():
            return []
        sizes = sizes_of_change(values_a, values_b)
        largest = float(sizes.max(initial=0))
        if not math.isfinite(largest):
            sizes[~np.isfinite(sizes)] = 0
            largest = float(sizes.max(initial=0))
        if largest > scale:
            sums = [None if own is None else own * (scale / largest) ** 2 for own in sums]
            scale = largest
        if largest:
            sizes /= scale
            _add(sums, first.shape, np.square(sizes, out=sizes), start)
        start += sizes.size
    return sums


def _add(sums: Sums, shape: Index, squares: Array, start: int) -> None:
    """Add the squares of elements that follow each other, from the one at `start` on."""
    for own, size, step in zip(sums, shape, contiguous(shape), strict=True):
        if own is not None:
            ends = np.arange(step - start % step, squares.size, step)
            # One number for each index that they pass, from one index on, again and again.
            runs = np.add.reduceat(squares, np.concatenate(([0], ends))) if step > 1 else squares
            first = start // step % size
            head, rest = runs[: size - first], runs[size - first :]
            whole = rest.size // size * size
            own[first : first + head.size] += head
            own[:] += rest[:whole].reshape(-1, size).sum(0)
            own[: rest.size - whole] += rest[whole:]
