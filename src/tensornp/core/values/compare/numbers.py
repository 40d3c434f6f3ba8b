"""Read two sources side by side, count the differences of their blocks, and name the rows that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, resolve
from tensornp.core.values.sources import Source
from tensornp.core.values.stats.figures import sum_of_squares

Array = np.ndarray[Any, Any]
_CHUNK_NUMEL = 2**16
"""Elements that are compared at once: the system maps larger temporary arrays anew each time."""


def pairs_of(a: Source, b: Source) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers of two sources of one shape, in flat blocks of equal length."""
    first, second, nothing = a.blocks(), b.blocks(), np.empty(0)
    left = right = nothing
    while True:
        left = left if left.size else next(first, nothing)
        right = right if right.size else next(second, nothing)
        size = min(left.size, right.size, _CHUNK_NUMEL)
        if not size:
            return
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]


def of_one_kind(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype == b.dtype:
        return a, b
    common = np.result_type(a.dtype, b.dtype)
    return a.astype(common), b.astype(common)


def _shortest(value: Any) -> Any:
    """Return a number with the fewest digits that tell it from others of its dtype."""
    return float(str(value)) if isinstance(value, (np.float16, np.float32)) else value.item()


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
    old, new = of_one_kind(old, new)
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


class PairTally:
    def __init__(self, first_dtype: str, second_dtype: str) -> None:
        self._dtypes = first_dtype, second_dtype
        is_one_dtype = first_dtype == second_dtype
        self.squares = np.zeros(3)
        self.largest: Any = 0
        self.largest_at: int | None = None
        self.count = self.num_changed = self.finite = self.only_first = self.only_second = 0
        self.has_same_bits = is_one_dtype
        self.is_cast_of_first = self.is_cast_of_second = not is_one_dtype
        self.first: int | None = None
        self.first_values: tuple[Any, Any] | None = None

    def add(self, a: Array, b: Array) -> None:
        start, self.count = self.count, self.count + a.size
        if self.is_cast_of_first:
            self.is_cast_of_first = _is_cast(a, self._dtypes[1], b)
        if self.is_cast_of_second:
            self.is_cast_of_second = _is_cast(b, self._dtypes[0], a)
        a, b = of_one_kind(a, b)
        if self.has_same_bits:
            self.has_same_bits = np.array_equal(_bits(a), _bits(b))
        x, y = _vector(a), _vector(b)
        squares = [sum_of_squares(one) for one in (x, y)]
        places = None
        if not np.isfinite(squares[0] + squares[1]):
            finite_a, finite_b = np.isfinite(a), np.isfinite(b)
            places = np.flatnonzero(finite_a & finite_b)
            self.only_first += int(np.count_nonzero(finite_a)) - len(places)
            self.only_second += int(np.count_nonzero(finite_b)) - len(places)
        differs = differing(a, b) if places is not None else a != b
        self.num_changed += int(np.count_nonzero(differs))
        if self.first is None and differs.any():
            at = int(differs.argmax())
            self.first, self.first_values = start + at, (_shortest(a[at]), _shortest(b[at]))
        if places is not None:
            a, b = a[places], b[places]
            x, y = _vector(a), _vector(b)
            squares = [sum_of_squares(one) for one in (x, y)]
        self.finite += a.size
        if not a.size:
            return
        sizes = sizes_of_change(a, b)
        d = _vector(sizes)
        squares.append(sum_of_squares(d))
        self.squares += squares
        at = int(sizes.argmax())
        if sizes[at]:
            size = sizes[at].item()
            if size > self.largest:
                self.largest, self.largest_at = size, start + (at if places is None else int(places[at]))


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{min(values.itemsize, 8)}")


def _vector(values: Array) -> Array:
    if values.dtype.kind == "c":
        return np.ascontiguousarray(values, np.complex128).view(np.float64)
    return values.astype(np.float64, copy=False)


def _is_cast(source: Array, name: str, target: Array) -> bool:
    facts = KNOWN.get(name)
    if facts is None or facts.values_per_element > 1 or name == "complex32":
        return False
    cast = source.real if source.dtype.kind == "c" and not name.startswith("complex") else source
    return not differing(cast.astype(resolve(name)).astype(target.dtype), target).any()


def rows_and_delta(old: Any, new: Any) -> tuple[str, str, float, int]:
    """Return rows and largest difference in words, its size, and how many elements became non-finite."""
    flat_old, flat_new = old.reshape(-1), new.reshape(-1)
    differs = differing(flat_old, flat_new)
    num_changed = int(np.count_nonzero(differs))
    if not num_changed:
        return "the same numbers in other bits (the sign of a zero, or a NaN's payload)", "", 0.0, 0
    is_numeric, tally = old.dtype.kind in "iufc", PairTally("", "")
    if is_numeric:
        tally.add(flat_old, flat_new)
    size, num_lost = float(tally.largest), tally.only_first
    if old.ndim == 0:
        return f"{old.item()!r} to {new.item()!r}", "", size, num_lost
    delta = f"{num_changed:,} differ"
    if is_numeric:
        num_unlike = int(np.count_nonzero(differs & ~(np.isfinite(flat_old) & np.isfinite(flat_new))))
        texts = [f"{num_unlike:,} NaN or infinite, now or before"] if num_unlike else []
        if tally.largest_at is not None:
            index = ", ".join(str(int(i)) for i in np.unravel_index(tally.largest_at, old.shape))
            texts.insert(0, f"largest difference {size:.6g} at [{index}]")
        delta = " · ".join(texts)
    rows = differs.reshape(len(old), -1).any(axis=1)
    noun = "element" if old.ndim == 1 else "row"
    if len(rows) > 1 and rows.all():
        return f"all {len(rows):,} {noun}s", delta, size, num_lost
    plural = "s" if np.count_nonzero(rows) != 1 else ""
    return f"{noun}{plural} {ranges_text(rows)} of {len(rows):,}", delta, size, num_lost


def ranges_text(changed: Any, max_ranges: int = 6) -> str:
    """Return the indices of a mask as ranges: "0, 3–5 and 12 more"."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], changed, [False]))))
    ranges = (edges[: 2 * max_ranges].reshape(-1, 2) + np.array([0, -1])).tolist()
    texts = [f"{first}" if first == last else f"{first}–{last}" for first, last in ranges]
    left = int(np.count_nonzero(changed)) - sum(last + 1 - first for first, last in ranges)
    return ", ".join(texts) + (f" and {left:,} more" if left else "")
