"""Say where nearly all of a change lies, and compute the difference of two tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.strides import contiguous
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.compare.numbers import Array, differing, pairs_of, ranges_text, shown_alike, sizes_of_change
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window_values import Subject
from tensornp.core.values.sources import source_of
from tensornp.core.values.stats.channels import add_by_index
from tensornp.core.values.stored import Box, StoredValues, flat_from_boxes
from tensornp.errors import NoDataError

Index = tuple[int, ...]
Sums = Sequence[Array | None]
"""For each axis the sums of |Δ|² over its indices; None for an axis of too many."""
NEARLY_ALL, FEW = 0.9, 0.5
"""The share of all |Δ|² that is nearly all, and the share of the indices of an axis up to which these are named."""
MAX_SIZE = 2**20
SPREAD = "spread over all"
_NOUNS = {1: ("element",), 2: ("row", "column")}


def element_with_nearly_all(found: Comparison) -> Index | None:
    """Return the index of the element that has nearly all of a change of several, or None."""
    norm, largest = found._norm_of_difference, found.max_abs
    if norm and largest and largest**2 > NEARLY_ALL * norm**2 and found._num_changed > 1:
        return found._largest_difference
    return None


def element_text(index: Index) -> str:
    """Return the sentence for an element with nearly all of a change."""
    return f"nearly all of it in one element {list(index)}"


def where_text(sums: Sums) -> str:
    """Return the place of a change: "nearly all of it in rows 0–15 of 128"; or ""."""
    known = {axis: own for axis, own in enumerate(sums) if own is not None}
    if not known or not next(iter(known.values())).sum() > 0:
        return ""
    found = {axis: _has_nearly_all(own) for axis, own in known.items()}
    is_complete = len(known) == len(sums)
    if is_complete and all(mask.sum() == 1 for mask in found.values()) and sum(map(len, known.values())) > 1:
        return element_text(tuple(int(mask.argmax()) for mask in found.values()))
    axis = min(found, key=lambda axis: found[axis].mean())
    if found[axis].mean() <= FEW:
        return f"nearly all of it in {_axis_text(axis, found[axis], len(sums))}"
    return SPREAD if is_complete else ""


def _has_nearly_all(sums: Array) -> Array:
    """Return a mask of the fewest indices with nearly all of a sum.

    Others of at least half their size belong to them."""
    order = np.argsort(-sums, kind="stable")
    shares = np.cumsum(sums[order])
    least = sums[order[np.searchsorted(shares, NEARLY_ALL * shares[-1])]]
    return np.asarray(sums >= max(least / 2, np.finfo(float).tiny))


def _axis_text(axis: int, mask: Array, ndim: int) -> str:
    ranges = f"{ranges_text(mask)} of {len(mask):,}"
    if ndim not in _NOUNS:
        return f"axis {axis}: {ranges}"
    return f"{_NOUNS[ndim][axis]}{'s' if mask.sum() > 1 else ''} {ranges}"


@outside_modes
@np.errstate(all="ignore")
def sums_by_axis(a: Any, b: Any, is_wanted: Callable[[], bool] = lambda: True) -> Sums:
    """Return the sums of |Δ|² over the indices of each axis, of elements that are finite on both sides.

    Reads both tensors once, as `compare` does; stops with an empty result when it is no longer wanted.
    """
    first, second = (source_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    sums = [np.zeros(size) if size <= MAX_SIZE else None for size in first.shape]
    start = 0
    for left, right in pairs_of(first, second):
        if not is_wanted():
            return []
        sizes = np.nan_to_num(sizes_of_change(left, right), posinf=0)
        squares = np.square(sizes, dtype=np.float64)
        for own, step in zip(sums, contiguous(first.shape), strict=True):
            if own is not None:
                add_by_index(own, squares, start, step)
        start += squares.size
    return sums


def difference_of(first: Subject, second: Subject) -> StoredValues:
    """Return ``second - first``, of float64 or complex128; 0 for equal elements, as two NaN are.

    Reads the elements of both when its own are read. An element that one masked tensor hides is NaN. Raises NoDataError
    if the shapes differ.
    """
    if first.shape != second.shape:
        raise NoDataError(f"shapes differ: {first.shape} and {second.shape}; open each of them with %weights")
    is_complex = any(one.info.dtype.is_complex for one in (first, second))
    dtype = np.complex128 if is_complex else np.float64

    @outside_modes
    @np.errstate(all="ignore")
    def read(box: Box) -> Any:
        places = [list(range(part.start, part.stop)) for part in box]
        a, b = shown_alike(*(gathered(one.tensor, one.info, one.plan, places) for one in (first, second)))
        # The difference of two integers of 64 bits needs more.
        wide = np.longdouble if all(one.dtype.kind in "iu" for one in (a, b)) else dtype
        a, b = a.astype(wide), b.astype(wide)
        return np.where(differing(a, b), b - a, 0).astype(dtype)

    return StoredValues(
        first.shape,
        np.dtype(dtype).name,
        lambda box: torch.from_numpy(read(box)),
        flat_from_boxes(first.shape, read),
        where="difference",
    )
