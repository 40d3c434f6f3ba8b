"""What an index takes of each dimension, as NumPy's basic indexing: no other kind is read of files."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.strides import MAX_NDIM
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class Range(NamedTuple):
    """The indices of one dimension, upwards."""

    first: int
    num: int
    step: int

    @property
    def slice(self) -> slice:
        """The same, as an index."""
        stop = self.first + (self.num - 1) * self.step + 1 if self.num else self.first
        return slice(self.first, stop, self.step)


Ranges = tuple[Range, ...]
"""Those of each dimension."""


class Taken(NamedTuple):
    """What basic indexing takes: `ranges` of each dimension, and `final`, the index that makes the result of them.

    It turns around what was asked for downwards, and drops or adds dimensions.
    """

    ranges: Ranges
    final: tuple[Any, ...]

    @property
    def counts(self) -> Shape:
        """How many indices of each dimension are taken."""
        return tuple(one.num for one in self.ranges)

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        kept = iter(self.counts)
        sizes = [(item, 1 if item is None else next(kept)) for item in self.final]
        return tuple(size for item, size in sizes if not isinstance(item, int))


def whole(shape: Shape) -> Ranges:
    """Return all indices."""
    return tuple(Range(0, size, 1) for size in shape)


def taken_by(index: Any, shape: Shape) -> Taken:
    """Return what `index` takes: integers, slices, ``...`` and None, as NumPy's basic indexing.

    Raises
    ------
    BadRequestError
        For an index of another kind, of too many dimensions, or out of bounds.
    """
    items = _expanded(index if isinstance(index, tuple) else (index,), len(shape))
    if max(len(shape), len(items)) > MAX_NDIM:
        raise BadRequestError(f"{max(len(shape), len(items))} dimensions are more than NumPy has")
    ranges: list[Range] = []
    final: list[Any] = []
    for item in items:
        if item is None:
            final.append(None)
            continue
        axis = len(ranges)
        if isinstance(item, slice):
            taken = _slice_of(item, shape[axis], axis)
            is_turned = taken.step < 0
            low = taken[-1] if is_turned and len(taken) else taken.start
            # Of a single one the step says nothing, and may be larger than any number of bytes.
            ranges.append(Range(low, len(taken), abs(taken.step) if len(taken) > 1 else 1))
            final.append(slice(None, None, -1 if is_turned else None))
        else:
            ranges.append(Range(_place_of(item, shape[axis], axis), 1, 1))
            final.append(0)
    return Taken(tuple(ranges), tuple(final))


def _expanded(items: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return an item for each dimension, and None where there is to be a new one."""
    at = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        raise BadRequestError("an index has one '...' at most")
    num_taken = sum(item is not None and item is not Ellipsis for item in items)
    if num_taken > ndim:
        raise BadRequestError(f"an index of {num_taken} dimensions is too long for {ndim}")
    rest = [slice(None)] * (ndim - num_taken)
    middle = at[0] if at else len(items)
    return [*items[:middle], *rest, *items[middle + 1 :]]


def _slice_of(item: slice, size: int, axis: int) -> range:
    try:
        taken = range(*item.indices(size))
        len(taken)
        return taken
    except OverflowError:
        # A range has as many as there are addresses.
        raise BadRequestError(f"axis {axis} has {size:,} indices, more than any array") from None
    except (TypeError, ValueError) as error:
        raise BadRequestError(f"the slice of axis {axis} is none: {error}") from None


def _place_of(item: Any, size: int, axis: int) -> int:
    try:
        # Older NumPys take their own truth values, and warn.
        if isinstance(item, (bool, np.bool_)):
            raise TypeError
        place = operator.index(item)
    except TypeError:
        has_several = is_array(item) or is_tensor(item) or issubclass(type(item), list)
        said = type(item).__name__ + ("; read the rows first" if has_several else "")
        raise BadRequestError(f"an index takes integers, slices, '...' and None, not {said}") from None
    if not -size <= place < size:
        reach = f"has {size:,} indices" if size else "is empty"
        raise BadRequestError(f"index {quoted(place)} is out of bounds: axis {axis} {reach}")
    return place % size
