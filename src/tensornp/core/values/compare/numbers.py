"""Read two sources side by side, compare two blocks, and name the rows that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.sources import Source

Array = np.ndarray[Any, Any]
_STEP = 2**18


def pairs_of(a: Source, b: Source) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers of two sources of one shape, in flat blocks of equal length."""
    first, second, nothing = a.blocks(), b.blocks(), np.empty(0)
    left = right = nothing
    while True:
        left = left if left.size else next(first, nothing)
        right = right if right.size else next(second, nothing)
        size = min(left.size, right.size)
        if not size:
            return
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]


def shown_alike(a: Array, b: Array) -> tuple[Array, Array]:
    """Return plain arrays; a hidden element equals only a hidden one."""
    if not (isinstance(a, np.ma.MaskedArray) or isinstance(b, np.ma.MaskedArray)):
        return a, b
    hidden_a, hidden_b = (np.ma.getmaskarray(values) for values in (a, b))
    both, one = hidden_a & hidden_b, hidden_a ^ hidden_b
    data_a, data_b = (np.array(np.ma.getdata(values)) for values in (a, b))
    data_a[both] = data_b[both] = 0
    if one.any():
        data_a, data_b = (values.astype(np.result_type(values.dtype, np.float64)) for values in (data_a, data_b))
        for data, other, hidden in ((data_a, data_b, hidden_a & one), (data_b, data_a, hidden_b & one)):
            data[hidden] = np.where(np.isnan(other[hidden]), 0, np.nan)
    return data_a, data_b


def of_one_kind(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype == b.dtype:
        return a, b
    common = np.result_type(a.dtype, b.dtype)
    if any(values.dtype.kind in "iu" and values.itemsize == 8 for values in (a, b)) and common.kind in "fc":
        common = np.dtype(np.clongdouble if common.kind == "c" else np.longdouble)
    return a.astype(common), b.astype(common)


def differing(old: Any, new: Any) -> Any:
    """Return a mask of the elements that differ; NaN equals NaN."""
    if old.dtype.kind not in "biufc":
        # Bits are compared: NaT, and the NaN of ml_dtypes, differ from themselves.
        bits = [values.view(np.uint8).reshape(len(values), values.itemsize) for values in (old, new)]
        return (bits[0] != bits[1]).any(axis=-1)
    differs = old != new
    return differs & ~(np.isnan(old) & np.isnan(new)) if old.dtype.kind in "fc" else differs


def sizes_of_change(old: Any, new: Any) -> Any:
    """Return |new − old| of two blocks: exact for integers, and 0 for equal elements, NaN included."""
    old, new = of_one_kind(*shown_alike(old, new))
    with np.errstate(all="ignore"):
        if old.dtype.kind in "iu":
            # A difference that does not fit the dtype fits the unsigned one.
            return np.where(new >= old, new - old, old - new).view(f"u{old.itemsize}")
        if old.dtype.kind == "b":
            return (old != new).view(np.uint8)
        sizes = new.astype(np.result_type(old.dtype, np.float64))
        sizes -= old
        sizes = np.abs(sizes, out=None if sizes.dtype.kind == "c" else sizes)
        # Equal infinities, and NaN on both sides, do not differ.
        return sizes if np.isfinite(sizes.max(initial=0)) else np.where(differing(old, new), sizes, 0)


def plain_number(value: Any) -> Any:
    number = value.item()
    if isinstance(number, np.longdouble):
        return int(number) if np.isfinite(number) and number == np.rint(number) else float(number)
    if isinstance(number, np.clongdouble):
        return complex(number)
    return number


class Difference(NamedTuple):
    """Rows that differ, and the largest difference; `num_lost` elements were finite and are not any more."""

    rows: str
    delta: str
    size: float
    num_lost: int = 0


def rows_and_delta(old: Any, new: Any) -> Difference:
    rows = np.zeros(old.shape[0] if old.ndim else 1, bool)
    num_changed = num_unlike = num_lost = largest_at = 0
    largest: Any = 0
    width = max(old.size // max(len(rows), 1), 1)
    for start in range(0, old.size, _STEP):
        part_old, part_new = (values.reshape(-1)[start : start + _STEP] for values in (old, new))
        at = np.flatnonzero(differing(part_old, part_new))
        if not len(at):
            continue
        num_changed += len(at)
        rows[(at + start) // width] = True
        if old.dtype.kind in "iufc":
            part_old, part_new = part_old[at], part_new[at]
            sizes = sizes_of_change(part_old, part_new)
            is_told = np.isfinite(part_old) & np.isfinite(part_new)
            num_unlike += len(at) - int(np.count_nonzero(is_told))
            num_lost += int(np.count_nonzero(np.isfinite(part_old) & ~np.isfinite(part_new)))
            sizes = np.where(is_told, sizes, 0)
            i = int(sizes.argmax())
            if sizes[i] > largest:
                largest, largest_at = sizes[i], start + int(at[i])
    if not num_changed:
        return Difference("the same numbers in other bits (the sign of a zero, or a NaN's payload)", "", 0.0)
    size = float(largest)
    if old.ndim == 0:
        return Difference(f"{old.item()!r} to {new.item()!r}", "", size, num_lost)
    noun = "element" if old.ndim == 1 else "row"
    plural = "s" if np.count_nonzero(rows) != 1 else ""
    delta = f"{num_changed:,} differ"
    if old.dtype.kind in "iufc":
        index = ", ".join(str(int(i)) for i in np.unravel_index(largest_at, old.shape))
        texts = [f"largest difference {size:.6g} at [{index}]"] if largest else []
        delta = " · ".join([*texts, *([f"{num_unlike:,} from or to NaN or infinity"] if num_unlike else [])])
    if len(rows) > 1 and rows.all():
        return Difference(f"all {len(rows):,} {noun}s", delta, size, num_lost)
    return Difference(f"{noun}{plural} {ranges_text(rows)} of {len(rows):,}", delta, size, num_lost)


def ranges_text(changed: Any, max_ranges: int = 6) -> str:
    """Return the indices of a mask as ranges: "0, 3–5 and 12 more"."""
    texts: list[str] = []
    left, at = np.count_nonzero(changed), 0
    while left and len(texts) < max_ranges:
        # Both stop at the first hit.
        first = at + int(changed[at:].argmax())
        at = first + (int(changed[first:].argmin()) or len(changed) - first)
        texts.append(f"{first}" if at == first + 1 else f"{first}–{at - 1}")
        left -= at - first
    return ", ".join(texts) + (f" and {left:,} more" if left else "")
