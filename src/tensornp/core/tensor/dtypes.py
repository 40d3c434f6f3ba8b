"""The NumPy counterpart of each torch dtype: the same, a wider one, or one of ml_dtypes.

torch is not imported here: a dtype is known by its name, so every decision can be made and tested without it.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError


class DtypeFacts(NamedTuple):
    """The NumPy counterpart of one torch dtype; `name` is the torch name without its prefix.

    If no NumPy dtype has the same values, `widened` holds each exactly, `extension` is the name in ml_dtypes, and
    `bits` the integer dtype that shares the bytes.
    """

    name: str
    numpy: str | None
    widened: str | None = None
    bits: str | None = None
    extension: str | None = None
    values_per_element: int = 1

    @property
    def dense_through(self) -> str | None:
        """The dtype through which torch 2.13 lays a sparse tensor out densely, where it cannot in its own."""
        if self.name in ("uint16", "uint32", "uint64"):
            return "int64"
        return None if self.name == "bfloat16" else self.widened


_NATIVE = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128".split()
_WIDENED = {
    "bfloat16": ("float32", "int16"),
    "float8_e4m3fn": ("float32", "uint8"),
    "float8_e4m3fnuz": ("float32", "uint8"),
    "float8_e5m2": ("float32", "uint8"),
    "float8_e5m2fnuz": ("float32", "uint8"),
    "float8_e8m0fnu": ("float32", "uint8"),
    "complex32": ("complex64", "int32"),
}

KNOWN: dict[str, DtypeFacts] = {
    **{name: DtypeFacts(name, name) for name in _NATIVE},
    **{name: DtypeFacts(name, None, widened, bits, name) for name, (widened, bits) in _WIDENED.items()},
    "float4_e2m1fn_x2": DtypeFacts(
        "float4_e2m1fn_x2", None, "float32", extension="float4_e2m1fn", values_per_element=2
    ),
}
"""Every torch dtype whose values NumPy can hold, by its bare name."""
EXTENSIONS = {facts.extension: facts for facts in KNOWN.values() if facts.extension}
"""Those that NumPy holds through ml_dtypes only, by the name there."""

FLOAT4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""The value of each 4-bit code of E2M1 (OCP Microscaling Formats 1.0, table 5); a byte's low nibble comes first."""


@functools.cache
def stored_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of elements of dtype `name`, or an unsigned integer of as many bits."""
    if name in _NATIVE:
        return np.dtype(name)
    itemsize = {"bfloat16": 2, "complex32": 4}.get(name, 1)
    return np.dtype(f"u{itemsize}")


@functools.lru_cache(maxsize=256)
def name_of(dtype: object) -> str:
    """Return the bare name of a torch dtype, a NumPy dtype, a scalar type or a string: ``"float32"``."""
    if isinstance(dtype, type):
        return np.dtype(dtype).name
    return str(dtype).removeprefix("torch.")


def asked_dtype(dtype: object) -> np.dtype[Any]:
    try:
        name = name_of(dtype)
    except Exception:
        raise BadRequestError(f"dtype={quoted(dtype)} is not a dtype; pass a NumPy dtype or its name") from None
    return resolve(name)


@functools.cache
def resolve(name: str) -> np.dtype[Any]:
    """Return the NumPy or ml_dtypes dtype of that name; raise BadRequestError for others."""
    if name in EXTENSIONS:
        import ml_dtypes

        if not hasattr(ml_dtypes, name):
            raise BadRequestError(f"ml_dtypes {ml_dtypes.__version__} has no {name}; install a newer one")
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    if dtype.kind not in "biufc":
        raise BadRequestError(
            f"{quoted(name)} is not a dtype that a tensor can become; name a numeric NumPy dtype such as 'float32'"
        )
    return dtype


@functools.cache
def has_extension(name: str) -> bool:
    """Return whether the installed ml_dtypes has a dtype `name`; before 0.6 there is no complex32."""
    import ml_dtypes

    return hasattr(ml_dtypes, name)


@functools.cache
def is_exact_cast(source: str, target: str) -> bool:
    """Return whether `target` has every value of `source`, by those that are hardest to keep."""
    import ml_dtypes

    (a_complex, a_dtype), (b_complex, b_dtype) = _real_part(source), _real_part(target)
    if a_complex and not b_complex:
        return False
    if a_dtype.kind in "iu" and b_dtype.kind in "iub":
        return bool(np.can_cast(a_dtype, b_dtype, "safe"))
    if a_dtype.kind in "iu":
        ends = np.iinfo(a_dtype)
        hardest = np.array([ends.min, ends.max - 1, ends.max], a_dtype)
    elif a_dtype.kind == "b":
        hardest = np.array([False, True])
    else:
        info = ml_dtypes.finfo(a_dtype)
        hardest = np.array([1 + float(info.eps), float(info.max), float(info.smallest_subnormal), np.inf], a_dtype)
        # Not all dtypes of ml_dtypes can be cast to each other.
        hardest = hardest.astype(np.float64)
    with np.errstate(all="ignore"):
        back = hardest.astype(b_dtype).astype(hardest.dtype)
    return bool(((back == hardest) | (np.isnan(back) & np.isnan(hardest))).all())


def _real_part(name: str) -> tuple[bool, np.dtype[Any]]:
    if name == "complex32":
        return True, np.dtype("float16")
    dtype = resolve(name)
    return (True, np.dtype(f"float{dtype.itemsize * 4}")) if dtype.kind == "c" else (False, dtype)


def largest(name: str) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(resolve(name)).max)


def is_differentiable(name: str) -> bool:
    return name.startswith(("float", "bfloat", "complex"))
