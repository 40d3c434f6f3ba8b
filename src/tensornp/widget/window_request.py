"""Parse requests to the navigator from any message of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensornp.core.values.shown.window import Index, Window, window_of
from tensornp.errors import BadRequestError

NONSENSE = "the page has asked for something that is no window of this tensor; reload the page"
_NUM_ROWS, _NUM_COLUMNS = 16, 12
"""What is seen where the page does not say how much it has room for."""


def integer(value: Any) -> int:
    """Return `value` if it is an integer."""
    if type(value) is not int:
        raise BadRequestError(NONSENSE)
    return value


def integers(value: Any) -> Index:
    """Return a list of integers as a tuple."""
    if not isinstance(value, (list, tuple)):
        raise BadRequestError(NONSENSE)
    return tuple(integer(item) for item in value)


def places_asked(value: Any) -> Index | None:
    """Return a list of integers as a tuple, None for None."""
    return None if value is None else integers(value)


def place_asked(value: Any, shape: Index) -> Index | None:
    """Return the index of an element, None if `shape` has no such element."""
    index = places_asked(value)
    return index if index is not None and _is_in(index, shape) else None


def _is_in(index: Index, shape: Index) -> bool:
    return len(index) == len(shape) and all(0 <= i < size for i, size in zip(index, shape, strict=True))


def window_asked(shape: Index, request: Mapping[str, Any]) -> Window:
    """Return the requested window, limited to an array of `shape`."""
    corner = request.get("corner")
    num_rows, num_columns = _size_asked(request)
    return window_of(
        shape,
        axes=_axes_asked(request.get("axes"), len(shape)),
        corner=() if corner is None else integers(corner),
        num_rows=num_rows,
        num_columns=num_columns,
    )


def window_turned(
    window: Window, chosen: tuple[int | slice, ...], request: Mapping[str, Any]
) -> tuple[Window, Index | None]:
    """Return the window at the start of an index, and its first element.

    The window runs along sliced axes. A single sliced axis replaces the axis of the columns.
    """
    first = tuple(item.start if isinstance(item, slice) else item for item in chosen)
    sliced = [axis for axis, item in enumerate(chosen) if isinstance(item, slice)]
    if not window.numel:
        return window, None
    rows, columns = window.row_axis, window.column_axis
    if len(sliced) > 1 and not {rows, columns} <= set(sliced):
        rows, columns = sliced[-2:]
    elif len(sliced) == 1 and sliced[0] not in (rows, columns):
        rows, columns = columns, sliced[0]
    corner = [
        at if not isinstance(item, slice) and axis in (rows, columns) else start
        for axis, (item, at, start) in enumerate(zip(chosen, window.corner, first, strict=True))
    ]
    if rows is not None and columns is not None:
        num_rows, num_columns = _size_asked(request)
        window = window_of(window.shape, axes=(rows, columns), num_rows=num_rows, num_columns=num_columns)
    return window.begun_at(corner).centered_on(first), first


def _size_asked(request: Mapping[str, Any]) -> Index:
    size = integers(request.get("size") or (_NUM_ROWS, _NUM_COLUMNS))
    if len(size) != 2:
        raise BadRequestError(NONSENSE)
    return size


def _axes_asked(axes: Any, ndim: int) -> tuple[int, int] | None:
    """Return the axes of rows and columns, None if the array has fewer dimensions."""
    if not isinstance(axes, list) or len(axes) != 2 or None in axes:
        if axes is None or axes in ([None, None], [None, 0]):
            return None
        raise BadRequestError(NONSENSE)
    rows, columns = integers(axes)
    return (rows, columns) if max(rows, columns) < ndim else None
