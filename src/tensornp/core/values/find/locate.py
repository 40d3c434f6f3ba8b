"""`locate`: where the NaNs are, or the zeros, or the largest element."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.memory.blocks import Block, batches
from tensornp.core.tensor.shards import Runs
from tensornp.core.tensor.strides import place_of
from tensornp.core.tensor.weight import values_of
from tensornp.core.values.compare.differing import ranges_text
from tensornp.core.values.reading.scopes import ALL
from tensornp.core.values.reading.supply import Supply, refuse_endless, supply_of
from tensornp.core.values.stats.figures import modulus_of
from tensornp.errors import BadRequestError, NoDataError, NotReadError

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]
KINDS = ("nan", "inf", "nonfinite", "zero", "min", "max", "absmax")
_WORDS = {
    "nan": "NaN", "inf": "infinite", "nonfinite": "not finite", "zero": "zero", "min": "smallest", "max": "largest",
    "absmax": "largest in size",
}  # fmt: skip
_NOUNS = {
    "inf": "infinity", "nonfinite": "element that is not finite", "min": "finite element", "max": "finite element",
    "absmax": "finite element",
}  # fmt: skip
MAX_INDICES = 10
"""Coordinates that are kept."""
MAX_SIZE = 2**22
"""Indices of an axis for which it is kept whether they hold any."""
_TASK_BLOCKS = 16
_IS_PLACE: dict[str, Callable[[Array], Array]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    "nonfinite": lambda values: ~np.isfinite(values),
    "zero": lambda values: values == 0,
}


@dataclass(frozen=True, slots=True)
class Location:
    """Where some elements of a tensor are.

    Attributes
    ----------
    what : str
        What was looked for.
    count : int
        How many there are.
    indices : tuple of tuple of int
        The first ten of them, in the order of their indices; of what is sharded, those in the whole tensor.
    axes : tuple of str
        For each axis, which of its indices hold any, in words: "rows 3–5 and 12 more of 100", "channel 0 only".
    value : float, int or None
        The extreme that was looked for.
    scope : str
        What was read.
    """

    what: str
    count: int
    indices: tuple[Index, ...]
    axes: tuple[str, ...]
    value: float | int | None
    scope: str

    def __bool__(self) -> bool:
        return self.count > 0

    _mime_, _repr_html_ = mime_of, html_of

    def __str__(self) -> str:
        noun = f"{_WORDS[self.what]} {self.value!r}" if self.value is not None else _WORDS[self.what]
        scope = f"; {self.scope}" if self.scope != ALL else ""
        if not self.count:
            return f"no {_NOUNS.get(self.what, noun)}{scope}"
        at = ", ".join(str(list(index)) for index in self.indices[:3])
        more = f" and {self.count - 3:,} more" if self.count > 3 else ""
        axes = "; ".join(filter(None, self.axes))
        found = counted(self.count, noun) if self.what == "zero" else f"{self.count:,} {noun}"
        return f"{found} at {at}{more}{f' ({axes})' if axes else ''}{scope}"


@never_compiled
def locate(tensor: Any, what: str = "nan") -> Location:
    """Locate NaN, infinities, zeros or extremes in a tensor or an array.

    Parameters
    ----------
    tensor : torch.Tensor, an object that stands for one, numpy.ndarray, WeightEntry
    what : str
        "nan", "inf", "nonfinite", "zero", or an extreme of the finite elements: "min", "max", "absmax" (of complex
        elements that of the modulus).

    Returns
    -------
    Location
        How many there are, the first coordinates, and for each axis which indices hold any.

    Raises
    ------
    BadRequestError
        For another `what`, or a tensor whose elements have no coordinates of their own (sparse, nested).
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.

    Notes
    -----
    Reads every element once, block by block, in the order of their indices; nothing is changed.
    """
    search = Search(supply_to_search(values_of(tensor), what), what)
    search.run(is_first_enough=False)
    return search.location()


@never_compiled
def next_place(tensor: Any, what: str, after: Index | None = None) -> Index | None:
    """Return the first such element behind the index `after`, beginning anew at the end; None where there is none.

    Stops as soon as it is found. An extreme is always the first of its kind.
    """
    search = Search(supply_to_search(tensor, what), what)
    if what in _IS_PLACE:
        search.after = place_of(after, search.supply.shape) if after else -1
        search.run(is_first_enough=True)
        behind = [index for index in search.found if index > search.after]
        found = behind or search.found
    else:
        search.run(is_first_enough=False)
        found = search.found
    return search.index(found[0]) if found else None


@outside_modes
def supply_to_search(tensor: Any, what: str) -> Supply:
    """Return what is read in the order of indices to look for `what`; raises as `locate` does."""
    if not isinstance(what, str) or what not in KINDS:
        raise BadRequestError(f"what is one of {', '.join(KINDS)}, not {quoted(what)}")
    supply = supply_of(tensor, in_order=True, caller="locate")
    if len(supply.parts) != 1 or supply.zeros:
        cure = "take one of its parts" if supply.nested_shapes else "take t.to_dense()"
        raise BadRequestError(f"the elements of this tensor are not stored one by one; {cure}")
    refuse_endless(supply, "locate")
    return supply


class Search:
    """One search through the elements in the order of their indices."""

    def __init__(self, supply: Supply, what: str) -> None:
        self.supply, self.what = supply, what
        self.after = -1
        self.count = 0
        self.found: list[int] = []
        self.value: Any = None
        self._seen = [np.zeros(size, bool) if size <= MAX_SIZE else None for size in supply.shape]

    @outside_modes
    def run(self, *, is_first_enough: bool) -> None:
        """Look at all elements, or until the first is found behind `after`."""
        (part,) = self.supply.parts
        first = 0
        try:
            for blocks in batches(part.blocks(), _TASK_BLOCKS):
                part.use_each(blocks, self._use(first), in_place=part.can_be_read_in_place())
                first += sum(math.prod(block.shape) for block in blocks) * part.per_element
                if is_first_enough and self.found and self.found[-1] > self.after:
                    return
        except NotReadError as reason:
            raise NoDataError(f"the values cannot be read: {reason}") from None

    def _use(self, first: int) -> Callable[[Array, Block], None]:
        at = first

        def use(values: Array, _: Block) -> None:
            nonlocal at
            hidden = np.ma.getmaskarray(values).reshape(-1) if isinstance(values, np.ma.MaskedArray) else None
            flat = np.ma.getdata(values).reshape(-1)
            if flat.dtype.kind == "c":
                flat = modulus_of(np.ascontiguousarray(flat.real), np.ascontiguousarray(flat.imag))
            self._note(self._places(flat, hidden), at)
            at += flat.size

        return use

    def _places(self, flat: Array, hidden: Array | None) -> Array:
        """Return where in a block those are that are looked for."""
        if self.what not in _IS_PLACE:
            return self._extremes(flat, hidden)
        if flat.dtype.kind not in "fc" and self.what != "zero":
            return np.zeros(0, np.int64)
        if self.what == "nan" and hidden is None and not np.isnan(flat.max() if flat.size else 0):
            # One pass in place of three: the largest of numbers of which one is NaN is NaN.
            return np.zeros(0, np.int64)
        is_place = _IS_PLACE[self.what](flat)
        return np.flatnonzero(is_place if hidden is None else is_place & ~hidden)

    def _extremes(self, flat: Array, hidden: Array | None) -> Array:
        sizes = np.abs(flat) if self.what == "absmax" and flat.dtype.kind == "f" else flat
        if self.what == "absmax" and flat.dtype.kind == "i":
            # The smallest integer has no opposite in its own dtype.
            sizes = np.maximum(flat, -(flat + 1)).astype(np.uint64) + (flat < 0)
        is_told = np.isfinite(sizes) if sizes.dtype.kind == "f" else np.ones(sizes.shape, bool)
        is_told = is_told if hidden is None else is_told & ~hidden
        if not is_told.any():
            return np.zeros(0, np.int64)
        told = sizes if is_told.all() else sizes[is_told]
        best = told.min() if self.what == "min" else told.max()
        known = self.value
        if known is not None and (best > known if self.what == "min" else best < known):
            return np.zeros(0, np.int64)
        if known is None or best != known:
            self.value, self.count, self.found = best, 0, []
            self._seen = [np.zeros(size, bool) if size <= MAX_SIZE else None for size in self.supply.shape]
        return np.flatnonzero((sizes == best) & is_told)

    def _note(self, places: Array, first: int) -> None:
        if not len(places):
            return
        self.count += len(places)
        flat = places + first
        behind = flat[flat > self.after][:1] if self.after >= 0 else flat[:0]
        self.found += [int(i) for i in flat[: max(MAX_INDICES - len(self.found), 0)]]
        self.found += [int(i) for i in behind if int(i) not in self.found]
        if self.supply.shape:
            for seen, coordinates in zip(self._seen, np.unravel_index(flat, self.supply.shape), strict=True):
                if seen is not None:
                    seen[coordinates] = True

    def index(self, flat: int) -> Index:
        """Return the coordinates of an element."""
        return self.supply.index(flat)

    def _in_whole(self) -> list[Array | None]:
        """Return for each axis which of its indices hold any; of a part of a tensor, among those of all of it."""
        shard = self.supply.shard
        if shard is None or shard.held is None or len(shard.held) != len(self._seen):
            return self._seen
        return [
            None if seen is None or size > MAX_SIZE else _in_axis(seen, runs, size)
            for seen, runs, size in zip(self._seen, shard.held, shard.whole, strict=True)
        ]

    def location(self) -> Location:
        """Return what was found."""
        value = None if self.value is None else self.value.item()
        axes = tuple(_axis_text(axis, seen) for axis, seen in enumerate(self._in_whole())) if self.count else ()
        first = tuple(self.index(flat) for flat in self.found[:MAX_INDICES])
        return Location(self.what, self.count, first, axes, value, self.supply.scope)


def _in_axis(seen: Array, runs: Runs, size: int) -> Array:
    whole, done = np.zeros(size, bool), 0
    for low, end in runs:
        whole[low:end] = seen[done : done + end - low]
        done += end - low
    return whole


def _axis_text(axis: int, seen: Array | None) -> str:
    """Return which indices of an axis hold any; empty where all do, or that was not kept."""
    if seen is None or seen.all():
        return ""
    return f"axis {axis}: {ranges_text(seen)} of {len(seen):,}"
