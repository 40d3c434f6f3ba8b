"""Say in words which rows of two copies of one array differ, and by how much."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.compare.numbers import differing, sizes_of_change

_STEP = 2**18
"""Elements that are compared at a time."""


class Difference(NamedTuple):
    """Rows that differ and the largest difference: "row 3 of 10", "largest |Δ| 2 at [3, 1]", 2.0.

    `num_lost` elements were finite and are not any more.
    """

    rows: str
    delta: str
    size: float
    num_lost: int = 0


def rows_and_delta(old: Any, new: Any) -> Difference:
    """Return the difference of two contiguous arrays of one shape and dtype."""
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
        texts = [f"largest |Δ| {size:.6g} at [{index}]"] if largest else []
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
