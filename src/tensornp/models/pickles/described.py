"""A few words for what a pickle would make of NumPy's classes, and for a tuple of many numbers."""

from __future__ import annotations

import re
from typing import Any

from tensornp.core.lowlevel.text import counted, legible
from tensornp.models.pickles.plain_calls import DTYPE, ENCODE, SCALARS, code_of, is_bytes, order_of
from tensornp.models.pickles.records import Call, Global, NotBuilt
from tensornp.models.pickles.tensors import MAX_SAID, name_of, sizes_of

MANY_NUMBERS = 16
"""Numbers of a tuple that are listed; the states of random number generators have hundreds."""
_MAX_NDIM = 64
_NUMBERS = frozenset((int, float, bool, complex))
_MASKED = ("numpy.ma.core", "_mareconstruct")
ARRAYS = frozenset(
    (f"numpy.{core}.{module}", name)
    for core in ("core", "_core")
    for module, name in (("multiarray", "_reconstruct"), ("numeric", "_frombuffer"))
) | {_MASKED}
"""What makes an array of NumPy in a pickle."""
DESCRIBED = frozenset([*ARRAYS, *SCALARS, DTYPE, ENCODE])
_WORDS_OF_TORCH = re.compile(r"(q?u?int|b?float|complex|bits)\d\w*|bool|half|double")
_MADE_OF_WORDS = (("torch", "device"), ("torch.serialization", "_get_layout"))
_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
_NAMES = {"b1": "bool", "O8": "object", "M8": "datetime64", "m8": "timedelta64"}


def described(value: Any) -> NotBuilt | None:
    """Return what stands for an array, a dtype, a scalar that is no plain value, or many numbers; None of another."""
    if type(value) is tuple:
        is_long = len(value) > MANY_NUMBERS and all(type(one) in _NUMBERS for one in value)
        return NotBuilt(f"tuple of {len(value):,} numbers") if is_long else None
    func = name_of(value.func) if type(value) is Call else None
    if func not in DESCRIBED:
        return None
    if func in ARRAYS:
        dtype, shape, _ = _array(value)
        return _words("masked NumPy array" if func == _MASKED else "NumPy array", shape, _dtype_name(dtype))
    if func == DTYPE:
        return _words("NumPy dtype", _dtype_name(value))
    if func in SCALARS:
        return _words("NumPy scalar", _dtype_name(value.args[0] if type(value.args) is tuple and value.args else None))
    return NotBuilt(f"{len(value.args[0]):,} bytes") if is_bytes(value.args) else None


def text_of_torch(value: Any) -> str | None:
    """Return the text of a dtype, layout or device of torch; None of another value."""
    if type(value) is Global:
        return str(value) if value.module == "torch" and _WORDS_OF_TORCH.fullmatch(value.name) else None
    is_word = type(value) is Call and name_of(value.func) in _MADE_OF_WORDS and type(value.args) is tuple
    parts: tuple[Any, ...] = value.args if is_word else ()
    is_sound = bool(parts) and type(parts[0]) is str and all(type(one) is int for one in parts[1:])
    return ":".join(map(str, parts))[:MAX_SAID] if is_sound else None


def arrays_left_out(num: int, where: str) -> str:
    """Return the sentence for so many arrays."""
    return f"{counted(num, 'NumPy array')} in {where} {'is' if num == 1 else 'are'} not listed"


def objects_of(call: Call) -> list[Any] | None:
    """Return the elements of an array of objects in one dimension; None of another one."""
    _, shape, objects = _array(call)
    return objects if name_of(call.func) in ARRAYS and type(objects) is list and shape == (len(objects),) else None


def _array(call: Call) -> tuple[Any, tuple[int, ...] | None, Any]:
    """Return the dtype, the shape and the elements of an array, as far as they are told."""
    is_buffer = name_of(call.func)[1] == "_frombuffer"
    told = call.args if is_buffer else call.state
    if type(told) is not tuple or len(told) < (4 if is_buffer else 5):
        return None, None, None
    shape = sizes_of(told[2 if is_buffer else 1])
    is_sound = shape is not None and len(shape) <= _MAX_NDIM
    return told[1 if is_buffer else 2], shape if is_sound else None, None if is_buffer else told[4]


def _words(said: str, *more: Any) -> NotBuilt:
    return NotBuilt(" ".join([said, *(str(one) for one in more if one not in (None, ""))]))


def _dtype_name(dtype: Any) -> str:
    """Return a dtype as NumPy calls it; empty of another thing."""
    code = code_of(dtype)
    if isinstance(code, Global):
        return legible(code.name[:MAX_SAID])
    if code is None:
        return ""
    is_number = code[:1] in _KINDS and code[1:].isdecimal() and len(code) <= len("f16")
    if not is_number and code not in _NAMES:
        return legible(code[:MAX_SAID])
    if order_of(dtype) == ">" and code != "b1":
        return f">{code}"
    return _NAMES.get(code) or f"{_KINDS[code[0]]}{8 * int(code[1:])}"
