"""Read an index that a user types, and write the expressions of what a window shows."""

from __future__ import annotations

from collections.abc import Sequence

from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.shards import Runs, ShardFacts, low_of, nth, num_of
from tensornp.core.values.shown.window import Window
from tensornp.errors import BadRequestError


def parse_index(text: str, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """Return an index or a slice for each axis of `shape`, counted from the front, with an end.

    `text` is a NumPy index of integers, slices without a step and ``...``, with or without brackets. It is parsed and
    never evaluated. Raises BadRequestError if it is anything else, names too many axes, or is out of bounds.
    """
    given = _items(text)
    num_named = len(given) - given.count(Ellipsis)
    if given.count(Ellipsis) > 1:
        raise BadRequestError(f"the index {quoted(text)} has more than one ...; keep one")
    if num_named > len(shape):
        axes = "1 axis" if num_named == 1 else f"{num_named} axes"
        raise BadRequestError(f"the index {quoted(text)} names {axes} of an array that has {len(shape)}; name fewer")
    at = given.index(Ellipsis) if Ellipsis in given else len(given)
    whole: list[object] = [slice(None)] * (len(shape) - num_named)
    items = [*given[:at], *whole, *given[at + 1 :]]
    return tuple([_within(item, axis, shape) for axis, item in enumerate(items)])


def index_here(index: Sequence[int | slice], shard: ShardFacts) -> tuple[int | slice, ...]:
    """Return an index of the whole tensor as an index of the part on this rank."""
    found: list[int | slice] = []
    for runs, item in zip(shard.held or (), index, strict=True):
        low, high = (item.start, item.stop) if isinstance(item, slice) else (item, item + 1)
        first, end = low_of(runs, low), low_of(runs, high)
        if first == end:
            raise BadRequestError(f"[{index_text(index)}] is not on this rank: {shard}")
        found.append(slice(first, end) if isinstance(item, slice) else first)
    return tuple(found)


def _items(text: str) -> list[object]:
    """Return the integers, slices and ellipses of an index, in order."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1].strip()
    try:
        return [_item(part.strip()) for part in inner.split(",")] if inner else []
    except ValueError:
        raise BadRequestError(f"{quoted(text)} is no index; write integers, slices and ... as in 3, :, 5:9") from None


def _item(text: str) -> object:
    if text == "...":
        return Ellipsis
    ends = [int(end) if end.strip() else None for end in text.split(":")]
    if ends == [None] or len(ends) > 3:
        raise ValueError(text)
    return ends[0] if len(ends) == 1 else slice(*ends)


def _within(item: object, axis: int, shape: Sequence[int]) -> int | slice:
    size, what = shape[axis], f"axis {axis} of shape {tuple(shape)}"
    if isinstance(item, slice):
        if item.step not in (None, 1):
            raise BadRequestError("a window has no steps between its elements; write the slice without one")
        start, stop, _ = item.indices(size)
        if start >= stop and size:
            raise BadRequestError(f"the slice {index_text([item])} holds nothing of {what}; begin before it ends")
        return slice(start, stop)
    assert isinstance(item, int)
    if -size <= item < size:
        return item % size
    reach = f"write {-size} to {size - 1}" if size else "it has no element to show"
    raise BadRequestError(f"the index {str(item)[:20]} is out of bounds for {what}; {reach}")


def index_text(index: Sequence[int | slice]) -> str:
    """Return an index as NumPy writes it, without the brackets: ``3, 0:20, 5:29``."""
    return ", ".join(_slice_text(item) if isinstance(item, slice) else str(item) for item in index)


def _slice_text(chosen: slice) -> str:
    return ":".join("" if end is None else str(end) for end in (chosen.start, chosen.stop))


def window_text(window: Window, shard: ShardFacts | None = None) -> str:
    """Return the index of a window, or of a part of a tensor, in the whole; ``:`` is a whole axis."""
    counts = {window.row_axis: window.num_rows, window.column_axis: window.num_columns}
    held: Sequence[Runs] = [((0, size),) for size in window.shape]
    whole = window.shape
    if shard is not None and shard.held is not None:
        held, whole = shard.held, shard.whole
    axes = enumerate(zip(held, window.corner, whole, strict=True))
    return ", ".join(_axis_text(runs, at, counts.get(axis), size) for axis, (runs, at, size) in axes)


def _axis_text(runs: Runs, at: int, count: int | None, size: int) -> str:
    """Return an index of an axis of the whole, or the range of `count` indices, which may have gaps."""
    if not num_of(runs) or count == 0:
        return ":"
    first, last = nth(runs, at), nth(runs, at + (count or 1) - 1)
    if count is None:
        return str(first)
    if last - first + 1 != count:
        return f"{first}…{last}"
    return ":" if count == size else f"{first}:{last + 1}"


def expression_of(name: str, window: Window) -> str:
    """Return the code of the shown elements of an array or tensor `name`: ``a[3, 0:20, 5:29]``."""
    index = window_text(window)
    return f"{name}[{index}]{'.T' if window.is_transposed else ''}" if index else name
