"""Calls in a pickle that would give a plain value: scalars of NumPy, complex numbers, and bytes of old protocols."""

from __future__ import annotations

import struct
from typing import Any

from tensornp.models.pickles.records import Call, Global

MAX_NBYTES = 2**16
"""Bytes of a value that is made."""
SCALARS = frozenset((f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core"))
DTYPE = ("numpy", "dtype")
ENCODE = ("_codecs", "encode")
_NO_BYTES = frozenset((module, "bytes") for module in ("builtins", "__builtin__"))
COMPLEX = frozenset((module, "complex") for module in ("builtins", "__builtin__"))
_KNOWN = frozenset([*SCALARS, ENCODE, *_NO_BYTES, *COMPLEX])
FORMATS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q",
    "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd",
}  # fmt: skip
"""How `struct` reads the scalars of each dtype of NumPy."""


def plain_of(func: Global, args: Any) -> complex | str | bytes | None:
    """Return the number, the text or the bytes that a call would give, without the call; None of any other one."""
    if func not in _KNOWN or type(args) is not tuple:
        return None
    try:
        if func in SCALARS:
            return _scalar(*args) if len(args) == 2 else None
        if func == ENCODE:
            return _latin_1(args[0]) if is_bytes(args) else None
        if func in COMPLEX:
            return complex(*args) if len(args) == 2 and all(type(one) is float for one in args) else None
        return None if args else b""
    except (struct.error, UnicodeError):
        return None


def is_bytes(args: Any) -> bool:
    """Return whether `_codecs.encode` would make bytes of these as protocols do that have none: a text in Latin-1."""
    return type(args) is tuple and len(args) == 2 and type(args[0]) is str and args[1] in ("latin1", "latin-1")


def code_of(dtype: Any) -> str | Global | None:
    """Return how a dtype of NumPy is told: as in `f8`, or by a class; None of another thing."""
    is_dtype = type(dtype) is Call and dtype.func == DTYPE and type(dtype.args) is tuple
    code = dtype.args[0] if is_dtype and dtype.args else None
    return code if isinstance(code, (str, Global)) else None


def order_of(dtype: Any) -> str:
    """Return the byte order of a dtype, `<` or `>`; empty where it is not told, or an element is itself an array."""
    state = dtype.state if type(dtype) is Call else None
    if type(state) is not tuple or len(state) < 3 or type(state[1]) is not str or state[2] is not None:
        return ""
    return {"<": "<", ">": ">", "|": "<"}.get(state[1], "")


def _latin_1(text: str) -> bytes | None:
    return text.encode("latin-1") if len(text) <= MAX_NBYTES else None


def _scalar(dtype: Any, data: Any) -> complex | str | bytes | None:
    code, order = code_of(dtype), order_of(dtype)
    # Python 2 wrote bytes as a text.
    data = _latin_1(data) if type(data) is str else data
    if not order or type(code) is not str or type(data) is not bytes or len(data) > MAX_NBYTES:
        return None
    if code in FORMATS:
        numbers = struct.unpack(order + FORMATS[code], data)
        real: complex = numbers[0]
        return complex(*numbers) if len(numbers) == 2 else real
    if code == f"U{len(data) // 4}":
        return data.decode("utf-32-be" if order == ">" else "utf-32-le").rstrip("\0")
    return data.rstrip(b"\0") if code == f"S{len(data)}" else None
