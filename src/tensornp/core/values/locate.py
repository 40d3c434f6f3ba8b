"""Locate NaN, infinities, zeros and extremes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.attributes import values_of
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.tensor.strides import place_of
from tensornp.core.values.sources import Source, source_of
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stats.record import ALL
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]
KINDS = ("nan", "inf", "nonfinite", "zero", "min", "max", "absmax")
_WORDS = {
    "nan": "NaN", "inf": "infinite", "nonfinite": "not finite", "zero": "zero", "min": "smallest", "max": "largest",
    "absmax": "largest in size",
}  # fmt: skip
_NOUNS = {"nan": "NaN", "inf": "infinity", "nonfinite": "element that is not finite", "zero": "zero"}
MAX_INDICES = 10
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
    value : float, int or None
        The extreme.
    scope : str
        The elements that were read.
    """

    what: str
    count: int
    indices: tuple[Index, ...]
    value: float | int | None
    scope: str

    def __bool__(self) -> bool:
        return self.count > 0

    _mime_, _repr_html_ = mime_of, html_of

    def __str__(self) -> str:
        noun = f"{_WORDS[self.what]} {self.value!r}" if self.value is not None else _WORDS[self.what]
        scope = f"; {self.scope}" if self.scope != ALL else ""
        if not self.count:
            return f"no {_NOUNS.get(self.what, 'finite element')}{scope}"
        found = counted(self.count, noun) if self.what == "zero" else f"{self.count:,} {noun}"
        return f"{found} at {self._at}{scope}"

    @property
    def _at(self) -> str:
        at = ", ".join(str(list(index)) for index in self.indices[:3])
        return at + (f" and {self.count - 3:,} more" if self.count > 3 else "")


@outside_modes
@np.errstate(all="ignore")
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
        The number and the first indices.

    Raises
    ------
    BadRequestError
        For another `what`, or a tensor whose elements have no coordinates of their own (sparse, nested).
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.

    Notes
    -----
    Reads every element once, block by block, and twice for an extreme; nothing is changed.
    """
    source, value = _search(values_of(tensor), what)
    count, first = 0, list[int]()
    for flat in _places(source, what, value):
        count += len(flat)
        first += flat[: MAX_INDICES - len(first)].tolist()
    number = None if value is None else value.item()
    return Location(what, count, tuple(map(source.index_of, first)), number, source.scope)


@outside_modes
@np.errstate(all="ignore")
def place_beside(tensor: Any, what: str, at: Index | None = None) -> Index | None:
    """Return the index of the next such element behind `at`, of the first after the last, or None."""
    source, value = _search(tensor, what)
    here = place_of(at, source.shape) if at and value is None else -1
    first = None
    for flat in _places(source, what, value):
        behind = flat[flat > here]
        if len(behind):
            return source.index_of(int(behind[0]))
        if len(flat) and first is None:
            first = flat[0]
    return None if first is None else source.index_of(int(first))


def _numbers(source: Source, what: str) -> Iterator[Array]:
    for flat in source.blocks():
        if flat.dtype.kind == "c":
            yield modulus_of(flat)
        elif what == "absmax" and flat.dtype.kind == "i":
            # The smallest integer has no opposite in its own dtype.
            yield np.maximum(flat, -(flat + 1)).astype(np.uint64) + (flat < 0)
        else:
            yield np.abs(flat) if what == "absmax" else flat


def _places(source: Source, what: str, value: Any) -> Iterator[Array]:
    first = 0
    for flat in _numbers(source, what):
        yield np.flatnonzero(_IS_PLACE[what](flat) if what in _IS_PLACE else flat == value) + first
        first += flat.size


def _search(tensor: Any, what: str) -> tuple[Source, Any]:
    if not isinstance(what, str) or what not in KINDS:
        raise BadRequestError(f"what must be one of {', '.join(KINDS)}, got {quoted(what)}")
    source = source_of(tensor, in_order=True, caller="locate")
    if len(source.parts) != 1:
        cure = "pass tnp.to_numpy(t), or of a nested tensor one of t.unbind()"
        raise BadRequestError(f"the elements of this tensor are not stored one by one; {cure}")
    if what in _IS_PLACE:
        return source, None
    finite = (flat[np.isfinite(flat)] for flat in _numbers(source, what))
    if what == "min":
        return source, min((some.min() for some in finite if some.size), default=None)
    return source, max((some.max() for some in finite if some.size), default=None)
