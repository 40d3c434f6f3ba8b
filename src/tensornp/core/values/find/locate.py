"""Locate NaN, infinities, zeros and extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor.shards import Runs
from tensornp.core.tensor.strides import place_of
from tensornp.core.tensor.weight import values_of
from tensornp.core.values.compare.differing import ranges_text
from tensornp.core.values.scopes import ALL
from tensornp.core.values.sources import Source, refuse_endless, source_of
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
"""Indices that are kept."""
MAX_SIZE = 2**22
"""Indices of an axis up to which those with any are kept."""
_IS_PLACE: dict[str, Callable[[Array], Array]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    "nonfinite": lambda values: ~np.isfinite(values),
    "zero": lambda values: values == 0,
}


@dataclass(frozen=True, slots=True)
class Location:
    """The places of some elements of a tensor.

    Attributes
    ----------
    what : str
        The search.
    count : int
        Number of elements.
    indices : tuple of tuple of int
        The first ten, in the order of indices; for a sharded tensor, the indices in the whole.
    axes : tuple of str
        For each axis, its indices with any, in words: "axis 0: 3–5 and 12 more of 100".
    value : float, int or None
        The extreme.
    scope : str
        The elements that were read.
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
        The number, the first indices, and for each axis the indices with any.

    Raises
    ------
    BadRequestError
        For another `what`, or a tensor whose elements have no coordinates of their own (sparse, nested).
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.

    Notes
    -----
    Reads every element once, block by block; nothing is changed.
    """
    search = Search(values_of(tensor), what)
    search.run()
    return search.location()


@never_compiled
def next_place(tensor: Any, what: str, after: Index | None = None) -> Index | None:
    """Return the first such element behind the index `after`, or the first of all.

    Stops when it is found. An extreme is always the first of its kind.
    """
    search = Search(tensor, what)
    if what in _IS_PLACE:
        search.after = place_of(after, search.source.shape) if after else -1
        search.run(is_first_enough=True)
        found = [search.behind] if search.behind is not None else search.found
    else:
        search.run()
        found = search.found
    return search.source.index(found[0]) if found else None


@dataclass(frozen=True, slots=True)
class Beside:
    """An element next to a place; it is the one of that `number`, from 1 on, of `count`."""

    index: Index
    number: int
    count: int


@never_compiled
def place_beside(tensor: Any, what: str, at: Index | None = None, *, is_back: bool = False) -> Beside | None:
    """Return the next "nan" or "inf" behind the index `at`, or the last one before it.

    Reads every element, to count them.
    """
    search = Search(tensor, what)
    search.after = place_of(at, search.source.shape) if at else -1
    search.run()
    if not search.count:
        return None
    if is_back:
        flat, number = (search.before, search.num_before) if search.before is not None else (search.last, search.count)
    elif search.behind is not None:
        flat, number = search.behind, search.num_before + search.is_at_place + 1
    else:
        flat, number = search.found[0], 1
    return Beside(search.source.index(flat), number, search.count)


class Search:
    """One search through the elements in the order of their indices."""

    def __init__(self, tensor: Any, what: str) -> None:
        self.source, self.what = _source_to_search(tensor, what), what
        self.after = -1
        self.value: Any = None
        self._forget()

    def _forget(self) -> None:
        self.count = self.num_before = 0
        self.found: list[int] = []
        self.before: int | None = None
        self.behind: int | None = None
        self.last, self.is_at_place = -1, False
        self._seen = [np.zeros(size, bool) if size <= MAX_SIZE else None for size in self.source.shape]

    @outside_modes
    @np.errstate(all="ignore")
    def run(self, *, is_first_enough: bool = False) -> None:
        """Look at all elements, or until one is found behind `after`."""
        first = 0
        try:
            for values in self.source.blocks():
                hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
                flat = np.ma.getdata(values)
                flat = modulus_of(flat) if flat.dtype.kind == "c" else flat
                self._note(self._places(flat, hidden) + first)
                first += flat.size
                if is_first_enough and self.behind is not None:
                    return
        except NotReadError as reason:
            raise NoDataError(f"the values cannot be read: {reason}") from None

    def _places(self, flat: Array, hidden: Array | None) -> Array:
        """Return the places of the wanted elements in a block."""
        if self.what not in _IS_PLACE:
            return self._extremes(flat, hidden)
        if flat.dtype.kind not in "fc" and self.what != "zero":
            return np.zeros(0, np.int64)
        if self.what == "nan" and hidden is None and not np.isnan(flat.max(initial=0)):
            # One pass instead of three: the largest number is NaN if one of them is.
            return np.zeros(0, np.int64)
        is_place = _IS_PLACE[self.what](flat)
        return np.flatnonzero(is_place if hidden is None else is_place & ~hidden)

    def _extremes(self, flat: Array, hidden: Array | None) -> Array:
        sizes = np.abs(flat) if self.what == "absmax" and flat.dtype.kind == "f" else flat
        if self.what == "absmax" and flat.dtype.kind == "i":
            # The smallest integer has no opposite in its own dtype.
            sizes = np.maximum(flat, -(flat + 1)).astype(np.uint64) + (flat < 0)
        is_shown = np.isfinite(sizes) if hidden is None else np.isfinite(sizes) & ~hidden
        shown = sizes[is_shown]
        if not shown.size:
            return np.zeros(0, np.int64)
        best = shown.min() if self.what == "min" else shown.max()
        if self.value is not None and (best > self.value if self.what == "min" else best < self.value):
            return np.zeros(0, np.int64)
        if self.value is None or best != self.value:
            self.value = best
            self._forget()
        return np.flatnonzero((sizes == best) & is_shown)

    def _note(self, flat: Array) -> None:
        if not len(flat):
            return
        before, to = (int(np.searchsorted(flat, self.after, side)) for side in ("left", "right"))
        self.before = int(flat[before - 1]) if before else self.before
        self.behind = int(flat[to]) if to < len(flat) and self.behind is None else self.behind
        self.is_at_place |= to > before
        self.last = int(flat[-1])
        self.num_before, self.count = self.num_before + before, self.count + len(flat)
        self.found += [int(i) for i in flat[: max(MAX_INDICES - len(self.found), 0)]]
        if self.source.shape:
            for seen, coordinates in zip(self._seen, np.unravel_index(flat, self.source.shape), strict=True):
                if seen is not None:
                    seen[coordinates] = True

    def _seen_in_whole(self) -> list[Array | None]:
        """Return for each axis of the whole tensor a mask of the indices with any."""
        shard = self.source.shard
        if shard is None or shard.held is None or len(shard.held) != len(self._seen):
            return self._seen
        return [
            None if seen is None or size > MAX_SIZE else _in_axis(seen, runs, size)
            for seen, runs, size in zip(self._seen, shard.held, shard.whole, strict=True)
        ]

    def location(self) -> Location:
        """Return the result."""
        value = None if self.value is None else self.value.item()
        axes = tuple(_axis_text(axis, seen) for axis, seen in enumerate(self._seen_in_whole())) if self.count else ()
        first = tuple(self.source.index(flat) for flat in self.found)
        return Location(self.what, self.count, first, axes, value, self.source.scope)


def _source_to_search(tensor: Any, what: str) -> Source:
    if not isinstance(what, str) or what not in KINDS:
        raise BadRequestError(f"what must be one of {', '.join(KINDS)}, got {quoted(what)}")
    source = outside_modes(source_of)(tensor, in_order=True, caller="locate")
    if len(source.parts) != 1 or source.zeros:
        cure = "pass one of t.unbind()" if source.nested_shapes else "pass tnp.to_numpy(t)"
        raise BadRequestError(f"the elements of this tensor are not stored one by one; {cure}")
    refuse_endless(source, "locate")
    return source


def _in_axis(seen: Array, runs: Runs, size: int) -> Array:
    whole, done = np.zeros(size, bool), 0
    for low, end in runs:
        whole[low:end] = seen[done : done + end - low]
        done += end - low
    return whole


def _axis_text(axis: int, seen: Array | None) -> str:
    """Return the indices of an axis with any, in words; empty if all have some, or they were not kept."""
    if seen is None or seen.all():
        return ""
    return f"axis {axis}: {ranges_text(seen)} of {len(seen):,}"
