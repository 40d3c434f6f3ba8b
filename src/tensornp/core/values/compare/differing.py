"""Where two blocks of numbers differ and by how much, and which rows of two copies of one array do, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_STEP = 2**18
"""Elements that are compared at a time."""


class Difference(NamedTuple):
    """Which rows of two arrays differ, and by how much: "row 3 of 10", "largest |Δ| 2 at [3, 1]", 2.0.

    `num_lost` elements were finite, and are no longer.
    """

    rows: str
    delta: str
    size: float
    num_lost: int = 0


def rows_and_delta(old: Any, new: Any) -> Difference:
    """Return how two arrays differ.

    Both are contiguous, of one shape and dtype. A byte for each row is all that is kept beside them.
    """
    rows = np.zeros(old.shape[0] if old.ndim else 1, bool)
    num_changed = num_unlike = num_lost = 0
    # How the difference is scaled, how large it is, and where it is: the largest one so far.
    largest: tuple[int, Any, int] = (1, 0, 0)
    width = max(old.size // max(len(rows), 1), 1)
    for start in range(0, old.size, _STEP):
        part_old, part_new = (values.reshape(-1)[start : start + _STEP] for values in (old, new))
        at = np.flatnonzero(differing(part_old, part_new))
        if not len(at):
            continue
        num_changed += len(at)
        rows[(at + start) // width] = True
        if old.dtype.kind in "iufc":
            delta, scale, unlike = deltas(part_old[at], part_new[at])
            num_unlike += unlike
            if unlike:
                num_lost += int(np.count_nonzero(np.isfinite(part_old[at]) & ~np.isfinite(part_new[at])))
            i = int(delta.argmax())
            if (scale, delta[i]) > largest[:2]:
                largest = scale, delta[i], start + int(at[i])
    if not num_changed:
        return Difference("the same numbers in other bits (the sign of a zero, or a NaN's payload)", "", 0.0)
    size = _size(largest)
    if old.ndim == 0:
        return Difference(f"{old.item()!r} to {new.item()!r}", "", size, num_lost)
    noun = "element" if old.ndim == 1 else "row"
    plural = "s" if np.count_nonzero(rows) != 1 else ""
    delta_text = _delta_text(largest, num_unlike, old.shape) if old.dtype.kind in "iufc" else f"{num_changed:,} differ"
    if len(rows) > 1 and rows.all():
        return Difference(f"all {len(rows):,} {noun}s", delta_text, size, num_lost)
    return Difference(f"{noun}{plural} {ranges_text(rows)} of {len(rows):,}", delta_text, size, num_lost)


def differing(old: Any, new: Any) -> Any:
    """Return where elements differ; NaN equals NaN here."""
    if old.dtype.kind not in "biufc":
        # By their bits: NaT, and the NaN of a field or of a dtype of ml_dtypes, are unlike themselves.
        bits = [values.view(np.uint8).reshape(len(values), values.itemsize) for values in (old, new)]
        return (bits[0] != bits[1]).any(axis=-1)
    differs = old != new
    return differs & ~(np.isnan(old) & np.isnan(new)) if old.dtype.kind in "fc" else differs


@np.errstate(all="ignore")
def deltas(old: Any, new: Any) -> tuple[Any, int, int]:
    """Return the absolute differences, by what they were divided, and how many have none: from or to NaN or infinity.

    The difference of two floats may be larger than the largest float: then only such ones are told, in quarters.
    """
    if old.dtype.kind in "iu":
        # Exact even where the difference does not fit the dtype: it always fits the unsigned one.
        return np.where(new >= old, new - old, old - new).view(f"u{old.itemsize}"), 1, 0
    wide = np.result_type(old.dtype, np.float64)
    old, new = old.astype(wide), new.astype(wide)
    is_finite = np.isfinite(old) & np.isfinite(new)
    num_lost = int(np.count_nonzero(~is_finite))
    delta = np.abs(new - old)
    is_beyond = is_finite & ~np.isfinite(delta)
    if is_beyond.any():
        return np.where(is_beyond, np.abs(new / 4 - old / 4), 0), 4, num_lost
    return np.where(is_finite, delta, 0), 1, num_lost


def largest_delta(a: Any, b: Any) -> int:
    """Return the largest absolute difference of integers with and without a sign, of which that has up to 65 bits."""
    signed, unsigned = (a, b) if a.dtype.kind == "i" else (b, a)
    modulo, unsigned = signed.astype(np.int64).view(np.uint64), unsigned.astype(np.uint64)
    is_negative = signed < 0
    delta = np.where(is_negative | (unsigned >= modulo), unsigned - modulo, modulo - unsigned)
    carries = is_negative & (unsigned >= modulo)
    return 2**64 + int(delta[carries].max()) if carries.any() else int(delta.max())


@np.errstate(all="ignore")
def _size(largest: tuple[int, Any, int]) -> float:
    """Return the largest difference as a float, infinity for what none can hold."""
    scale, delta, _ = largest
    return float(scale * np.float64(delta))


def _delta_text(largest: tuple[int, Any, int], num_lost: int, shape: tuple[int, ...]) -> str:
    scale, delta, at = largest
    index = ", ".join(str(int(i)) for i in np.unravel_index(at, shape))
    if np.isinf(_size(largest)):
        # No float can hold it: a long double, or one of the exponent of the largest float.
        size = f"{scale * (delta / 1e308):.6g}e+308" if scale > 1 else np.format_float_scientific(delta, 5, trim="-")
    else:
        size = f"{float(scale * delta):.6g}"
    texts = [f"largest |Δ| {size} at [{index}]"] if delta else []
    return " · ".join(texts + ([f"{num_lost:,} from or to NaN or infinity"] if num_lost else []))


def ranges_text(changed: Any, max_ranges: int = 6) -> str:
    """Return where a one-dimensional array is True, as ranges: "0, 3–5 and 12 more"."""
    texts: list[str] = []
    left, at = np.count_nonzero(changed), 0
    while left and len(texts) < max_ranges:
        # Both stop at the first that they find.
        first = at + int(changed[at:].argmax())
        at = first + (int(changed[first:].argmin()) or len(changed) - first)
        texts.append(f"{first}" if at == first + 1 else f"{first}–{at - 1}")
        left -= at - first
    return ", ".join(texts) + (f" and {left:,} more" if left else "")
