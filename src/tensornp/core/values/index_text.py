"""Indices as text: the one that a user types, read and never run, and the expressions of what is seen."""

from __future__ import annotations

import ast
import cmath
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from tensornp.core.tensor import dtypes
from tensornp.core.values.window import Window
from tensornp.errors import BadRequestError

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo

MAX_CHARACTERS = 1000
"""Of a text that is read as an index or a number."""
_ACCEPTED = "integers, slices and ... as in 3, :, 5:9"
_NO_ELEMENT = {
    "sparse": "make it dense first, with t.to_dense()",
    "mkldnn": "make it dense first, with t.to_dense()",
    "dequantized": "dequantize it first, with t.dequantize()",
    "masked": "set it in t.get_data()",
    "zero": "make a real one of it first, with torch.zeros",
    "lazy": "materialize it first",
}
_SPECIAL_COMPLEX = re.compile(r"\(?[-+]?(nan|inf|[\d.e+-]+)[-+](nan|inf|[\d.e+-]+)j\)?")
_SPECIAL = {"nan": math.nan, "inf": math.inf}


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
        raise BadRequestError(
            f"the index {quoted(text)} names {num_named} axes of an array that has {len(shape)}; name fewer"
        )
    at = given.index(Ellipsis) if Ellipsis in given else len(given)
    whole = [slice(None)] * (len(shape) - num_named)
    spread = [*given[:at], *whole, *given[at + 1 :]]
    return tuple(
        _slice_in(axis, size, item) if isinstance(item, slice) else _place_in(axis, size, item)  # type: ignore[arg-type]
        for axis, (size, item) in enumerate(zip(shape, spread, strict=True))
    )


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


def _place_in(axis: int, size: int, place: int) -> int:
    if -size <= place < size:
        return place % size
    reach = f"write {-size} to {size - 1}" if size else "it has no element to show"
    raise BadRequestError(f"the index {_short(place)} is out of bounds for axis {axis} of size {size:,}; {reach}")


def _slice_in(axis: int, size: int, chosen: slice) -> slice:
    start, stop, _ = chosen.indices(size)
    if start >= stop and size:
        raise BadRequestError(
            f"the slice {_slice_text(chosen)} holds nothing of axis {axis} of size {size:,}; begin before it ends"
        )
    return slice(start, stop)


def _slice_text(chosen: slice) -> str:
    return ":".join("" if end is None else _short(end) for end in (chosen.start, chosen.stop))


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**20 else "that"


def index_text(index: Sequence[int | slice]) -> str:
    """Return an index as NumPy writes it, without the brackets: ``3, 0:20, 5:29``."""
    return ", ".join(_slice_text(item) if isinstance(item, slice) else str(item) for item in index)


def window_text(window: Window) -> str:
    """Return the index of what is seen in a window, a colon for an axis that is seen whole."""
    counts = {window.row_axis: window.num_rows, window.column_axis: window.num_columns}
    return index_text(
        [
            at if axis not in counts else slice(None) if counts[axis] == size else slice(at, at + counts[axis])
            for axis, (at, size) in enumerate(zip(window.corner, window.shape, strict=True))
        ]
    )


def expression_of(name: str, window: Window) -> str:
    """Return what gives the array or tensor that is seen, of one called `name`: ``a[3, 0:20, 5:29]``."""
    index = window_text(window)
    return f"{name}[{index}]{'.T' if window.is_transposed else ''}" if index else name


def setting_code(info: TensorInfo, name: str, index: Sequence[int], text: str) -> str:
    """Return the line that sets the element at `index` of the tensor called `name` to the number `text`; nothing runs.

    Raises
    ------
    BadRequestError
        If `text` is no number that the dtype holds, or the tensor has no single elements.
    """
    facts = dtypes.KNOWN.get(dtypes.name_of(info.dtype))
    cure = _NO_ELEMENT.get(info.kind.name)
    if facts is not None and facts.values_per_element > 1:
        cure = "convert it, and set it in the array"
    if cure:
        raise BadRequestError(f"an element of this {info.kind} tensor cannot be set by itself; {cure}")
    held = index_text(index)
    line = f"{name}[{held or '()'}] = {_number_text(text, dtypes.name_of(info.dtype))}"
    if info.is_inference:
        return f"with torch.inference_mode(): {line}"
    return f"with torch.no_grad(): {line}" if info.requires_grad and info.is_leaf else line


def _number_text(text: str, dtype: str) -> str:
    """Return a number as code; infinities and NaN are no names of Python."""
    facts = dtypes.KNOWN.get(dtype)
    own = np.dtype(facts.numpy or facts.widened or "float32") if facts is not None else np.dtype("float32")
    value = _number(text, own.kind == "c")
    if own.kind == "b":
        if value not in (0, 1):
            raise BadRequestError(f"{quoted(text)} is no bool; write True or False")
        return str(bool(value))
    if own.kind in "iu":
        bounds = np.iinfo(own)
        if not isinstance(value, int) or not bounds.min <= value <= bounds.max:
            raise BadRequestError(f"{quoted(text)} is no {dtype}; write a whole number of {bounds.min} to {bounds.max}")
        # torch takes no such number as it is.
        return str(int(value)) if value < 2**63 else f"torch.tensor({value}, dtype=torch.{dtype})"
    is_told = _is_special(text) or (type(value) is complex and not cmath.isfinite(value))
    if abs(value) > float(np.finfo(own).max) and not is_told:
        raise BadRequestError(f"{quoted(text)} is more than a {own} holds; write inf, or a smaller number")
    _check_special(value, text, dtype)
    if type(value) is complex:
        return repr(value) if cmath.isfinite(value) else f"complex('{value}')"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(float(value.real)) if abs(value) >= 2**63 else repr(value)


def _check_special(value: complex, text: str, dtype: str) -> None:
    """Raise BadRequestError for an infinity, a NaN or a sign that the dtype has not, and would take another one for."""
    if type(value) is complex or (cmath.isfinite(value) and value.real >= 0):
        return
    number, own = value.real, getattr(torch, dtype, None)
    if own is not None and own.is_floating_point:
        held = float(torch.tensor(number, dtype=torch.float32).to(own).float())
        is_other = math.isnan(held) != math.isnan(number) or math.isinf(held) != math.isinf(number)
    else:
        # Quantized numbers are finite; a complex dtype has them all.
        held, is_other = number, not math.isfinite(number) and dtype.startswith(("qint", "quint"))
    if is_other or number < 0 < held:
        raise BadRequestError(f"{quoted(text)} is no {dtype}, which has no such number; write another one")


def _is_special(text: str) -> bool:
    return text.strip().lower().lstrip("+-−") in _SPECIAL


def _number(text: str, may_be_complex: bool) -> complex:
    """Return the number that `text` is, read and never run."""
    plain = text.strip().replace("−", "-")
    if _is_special(text):
        value = _SPECIAL[plain.lower().lstrip("+-")]
        return -value if plain.startswith("-") else value
    try:
        if len(plain) > MAX_CHARACTERS:
            raise ValueError
        if may_be_complex and _SPECIAL_COMPLEX.fullmatch(plain):
            return complex(plain)
        read = ast.literal_eval(plain)
        if type(read) in (int, float, bool) or (type(read) is complex and may_be_complex):
            return complex(read) if type(read) is complex else read
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    raise BadRequestError(
        f"{quoted(text)} is no number of this tensor; write one such as {'1+2j' if may_be_complex else '1.5'}"
    )
