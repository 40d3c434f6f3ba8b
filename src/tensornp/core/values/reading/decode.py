"""From the bits of a block to numbers that NumPy computes with: short floats widened, lazy bits applied."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensornp.core.tensor import dtypes

Array = np.ndarray[Any, Any]
Decoder = Callable[[Array], Array]
_GRAIN = 2**15
"""Elements that torch does in one thread (`at::internal::GRAIN_SIZE`)."""
_OWN = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64 complex64 complex128".split()


@cache
def stored_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype by which the elements of dtype `name` are read: its own, or an integer of their bits."""
    if name in _OWN or name == "float16":
        return np.dtype(name)
    itemsize = {"bfloat16": 2, "complex32": 4}.get(name, 1)
    return np.dtype(f"u{itemsize}")


def decoder(name: str, *, is_conj: bool = False, is_neg: bool = False) -> Decoder:
    """Return what makes numbers of a block of elements of dtype `name`, in a buffer of its own that is used again.

    float16, bfloat16, float8 and float4 become float32, complex32 becomes complex64, all exactly; what NumPy has is
    handed on as it is. float4 has two values in each byte, so that the last dimension becomes twice as long.
    """
    decode = _of_bits(name)
    if not (is_conj or is_neg):
        return decode

    def resolved(block: Array) -> Array:
        values = decode(block)
        values = values.conj() if is_conj else values
        return -values if is_neg else values

    return resolved


def _of_bits(name: str) -> Decoder:
    if name not in dtypes.KNOWN:
        return _unknown
    if name == "bool":
        # Any byte but 0 is True, as in a mask of 0 and 255 that is viewed so; its figures count ones.
        return lambda block: np.asarray(block.view(np.uint8) != 0)
    if name in _OWN or name == "float16":
        own = _half if name == "float16" else _same
        return lambda block: own(block if block.dtype.isnative else block.astype(block.dtype.newbyteorder("=")))
    if name == "bfloat16":
        return _bfloat
    if name == "complex32":
        return lambda block: _half(block.reshape(-1).view(np.float16)).view(np.complex64).reshape(block.shape)
    table = _table(name)
    if table.ndim > 1:
        return lambda block: table[block].reshape(*block.shape[:-1], -1)
    return table.take


def _same(block: Array) -> Array:
    return block


def _unknown(block: Array) -> Array:
    """Widen what only NumPy has, and ml_dtypes: long doubles, small integers, other short floats."""
    if block.dtype.kind in "fc":
        return block.astype(np.complex128 if block.dtype.kind == "c" else np.float64)
    return block.astype(np.int8 if block.dtype.name.startswith(("int", "uint")) else np.float32)


def _half(block: Array) -> Array:
    """Widen by torch, which is fifteen times as fast; in pieces that it does not spread over threads."""
    import torch

    wide = np.empty(block.shape, np.float32)
    source, target = torch.from_numpy(block.reshape(-1)), torch.from_numpy(wide.reshape(-1))
    for start in range(0, block.size, _GRAIN):
        target[start : start + _GRAIN] = source[start : start + _GRAIN]
    return wide


def _bfloat(block: Array) -> Array:
    wide = block.astype(np.uint32)
    # NumPy 1 makes an int64 of a single number with 16.
    wide <<= np.uint32(16)
    return wide.view(np.float32)


def _table(name: str) -> Array:
    """Return the value of each byte, or the two values of each."""
    codes = np.arange(256, dtype=np.uint8)
    if name == "float4_e2m1fn_x2":
        values = np.array(dtypes.FLOAT4_VALUES, np.float32)
        return np.stack((values[codes & 15], values[codes >> 4]), -1)
    return codes.view(dtypes.resolve(name)).astype(np.float32)
