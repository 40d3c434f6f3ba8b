"""Indices as text: the one that a user types, read and never run, and the expressions of what is seen."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensornp.core.tensor.shards import Runs, ShardFacts, low_of, nth, num_of
from tensornp.core.values.shown.window import Window
from tensornp.errors import BadRequestError

MAX_CHARACTERS = 1000
"""Of a text that is read as an index or a number."""
_MAX_DIGITS = 20
_ACCEPTED = "integers, slices and ... as in 3, :, 5:9"


def parse_index(text: str, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """Return for each axis of `shape` the index or the slice that `text` names, counted from the front, with an end.

    `text` is that of a NumPy index of integers, slices without a step, and ``...``, with or without the brackets. It is
    parsed and never evaluated. An axis that is not named is taken whole.

    Raises
    ------
    BadRequestError
        If it is anything else, names too many axes, or what is not there.
    """
    given = _items(text)
    if sum(item is Ellipsis for item in given) > 1:
        raise BadRequestError(f"the index {quoted(text)} has more than one ...; keep one")
    num_named = len(given) - (Ellipsis in given)
    if num_named > len(shape):
        axes = "1 axis" if num_named == 1 else f"{num_named} axes"
        raise BadRequestError(f"the index {quoted(text)} names {axes} of an array that has {len(shape)}; name fewer")
    at = given.index(Ellipsis) if Ellipsis in given else len(given)
    whole = [slice(None)] * (len(shape) - num_named)
    spread = [*given[:at], *whole, *given[at + 1 :]]
    return tuple(
        _slice_in(axis, shape, item) if isinstance(item, slice) else _place_in(axis, shape, item)  # type: ignore[arg-type]
        for axis, item in enumerate(spread)
    )


def index_here(index: Sequence[int | slice], shard: ShardFacts) -> tuple[int | slice, ...]:
    """Return an index of the whole, as `parse_index` gives it, as one of the part that this rank holds.

    Raises
    ------
    BadRequestError
        If this rank holds nothing of it.
    """
    found: list[int | slice] = []
    for runs, item in zip(shard.held or (), index, strict=True):
        low, high = (item.start, item.stop) if isinstance(item, slice) else (item, item + 1)
        first, end = low_of(runs, low), low_of(runs, high)
        if first == end:
            raise BadRequestError(f"[{index_text(index)}] is not on this rank: {shard}")
        found.append(slice(first, end) if isinstance(item, slice) else first)
    return tuple(found)


def quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _items(text: str) -> list[object]:
    """Return the integers, slices and ellipses of an index, in order."""
    inner = text.strip()
    try:
        if len(inner) > MAX_CHARACTERS:
            raise ValueError
        if inner.startswith("[") and inner.endswith("]"):
            inner = inner[1:-1].strip()
        if not inner:
            return []
        node = ast.parse(f"_[{inner}]", mode="eval").body
        if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
            raise ValueError
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [_item(part) for part in parts]
    except BadRequestError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BadRequestError(f"{quoted(text)} is no index; write {_ACCEPTED}") from None


def _item(node: ast.expr) -> object:
    if isinstance(node, ast.Slice):
        if node.step is not None and _integer(node.step) != 1:
            raise BadRequestError("a window has no steps between its elements; write the slice without one")
        return slice(*(None if end is None else _integer(end) for end in (node.lower, node.upper)))
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return Ellipsis
    return _integer(node)


def _integer(node: ast.expr) -> int:
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = -sign if isinstance(node.op, ast.USub) else sign
        node = node.operand
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sign * node.value
    raise ValueError


def _place_in(axis: int, shape: Sequence[int], place: int) -> int:
    size = shape[axis]
    if -size <= place < size:
        return place % size
    reach = f"write {-size} to {size - 1}" if size else "it has no element to show"
    raise BadRequestError(
        f"the index {_short(place)} is out of bounds for axis {axis} of shape {tuple(shape)}; {reach}"
    )


def _slice_in(axis: int, shape: Sequence[int], chosen: slice) -> slice:
    size = shape[axis]
    start, stop, _ = chosen.indices(size)
    if start >= stop and size:
        said = f"the slice {_slice_text(chosen)} holds nothing of axis {axis} of shape {tuple(shape)}"
        raise BadRequestError(f"{said}; begin before it ends")
    return slice(start, stop)


def _slice_text(chosen: slice) -> str:
    return ":".join("" if end is None else _short(end) for end in (chosen.start, chosen.stop))


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}…"


def index_text(index: Sequence[int | slice]) -> str:
    """Return an index as NumPy writes it, without the brackets: ``3, 0:20, 5:29``."""
    return ", ".join(_slice_text(item) if isinstance(item, slice) else str(item) for item in index)


def window_text(window: Window, shard: ShardFacts | None = None) -> str:
    """Return the index of what is seen in a window, a colon for an axis that is seen whole; of a part, in the whole."""
    counts = {window.row_axis: window.num_rows, window.column_axis: window.num_columns}
    if shard is not None and shard.held is not None:
        return ", ".join(
            _text_in_whole(runs, at, counts.get(axis), size)
            for axis, (runs, at, size) in enumerate(zip(shard.held, window.corner, shard.whole, strict=True))
        )
    return index_text(
        [
            at if axis not in counts else slice(None) if counts[axis] == size else slice(at, at + counts[axis])
            for axis, (at, size) in enumerate(zip(window.corner, window.shape, strict=True))
        ]
    )


def _text_in_whole(runs: Runs, at: int, count: int | None, size: int) -> str:
    """Return what is seen of an axis: one index of it, or so many, which may have others between them."""
    if not num_of(runs):
        return ":"
    first, last = nth(runs, at), nth(runs, at + (count or 1) - 1)
    if count is None:
        return str(first)
    if last - first + 1 != count:
        return f"{first}…{last}"
    return ":" if count == size else f"{first}:{last + 1}"


def expression_of(name: str, window: Window) -> str:
    """Return what gives the array or tensor that is seen, of one called `name`: ``a[3, 0:20, 5:29]``."""
    index = window_text(window)
    return f"{name}[{index}]{'.T' if window.is_transposed else ''}" if index else name
