"""The line of code that sets one element to what somebody types."""

from __future__ import annotations

import ast
import cmath
import math
import re
from collections.abc import Sequence

import numpy as np
import torch

from tensornp.core.tensor import dtypes
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.shown.typed_index import MAX_CHARACTERS, index_text, quoted
from tensornp.errors import BadRequestError

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
