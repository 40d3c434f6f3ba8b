"""Convert NumPy arrays to tensors, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.text import legible, quoted, with_article
from tensornp.core.tensor import dtypes
from tensornp.errors import BadRequestError, CopyRequiredError, UnsupportedArrayError

_MAX_REASON = 120
"""Characters of what torch has to say."""


def tensor_from_numpy(
    array: np.ndarray[Any, Any] | np.generic, copy: bool | None, device: torch.device
) -> torch.Tensor:
    """Return the tensor of an array or scalar; a masked array gives a MaskedTensor.

    Shares memory where that is possible unless `copy` is True, copies where not unless it is False.
    """
    if issubclass(type(array), np.ma.MaskedArray):
        return _masked_tensor(array, copy, device)
    return _tensor_of(np.asarray(array), copy, device)


def why_copied(array: np.ndarray[Any, Any] | np.generic) -> str:
    """Return why `tensor_from_numpy` copies an array; empty if it shares memory."""
    if issubclass(type(array), np.ma.MaskedArray):
        return "a masked array"
    plain = np.asarray(array)
    facts = dtypes.KNOWN.get(plain.dtype.name) or dtypes.EXTENSIONS.get(plain.dtype.name)
    with modes.outside_modes():
        cpu = torch.device("cpu")
    return _why_not_shared(plain, facts, cpu) if facts is not None else "an array of this dtype"


def usable_device(device: Any) -> torch.device:
    """Return a torch device, the CPU for None; raise if it cannot be used here."""
    try:
        with modes.outside_modes():
            place = torch.device("cpu" if device is None else device)
            if place.type != "cpu":
                torch.empty(0, device=place)
            return place
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        reason = legible(str(error).partition("\n")[0][:_MAX_REASON])
        raise BadRequestError(
            f"device={quoted(device)} cannot be used here ({reason}); pass another, or None for the CPU"
        ) from error


def _tensor_of(array: np.ndarray[Any, Any], copy: bool | None, device: torch.device) -> torch.Tensor:
    facts = dtypes.KNOWN.get(array.dtype.name) or dtypes.EXTENSIONS.get(array.dtype.name)
    if facts is None or not hasattr(torch, facts.name):
        raise UnsupportedArrayError(_no_dtype_text(array.dtype))
    obstacle = _why_not_shared(array, facts, device)
    if copy is False and obstacle:
        raise CopyRequiredError(f"{obstacle} cannot share memory with a tensor; pass copy=None to allow a copy")
    if copy or (obstacle and device.type == "cpu"):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
    elif obstacle:
        # torch takes no array as it is that it could not share, not even on its way to another device.
        array = np.require(array, array.dtype.newbyteorder("="), ["C", "W"])
    with modes.outside_modes():
        if facts.values_per_element > 1:
            return _packed(array).to(device)
        # `view` also gives NumPy's several C types of one size (longlong) the one name that torch knows.
        bits = array.view(np.dtype(facts.bits or facts.numpy))
        tensor = torch.from_numpy(bits)
        return (tensor if facts.numpy else tensor.view(getattr(torch, facts.name))).to(device)


def _masked_tensor(array: Any, copy: bool | None, device: torch.device) -> torch.Tensor:
    from torch.masked import MaskedTensor

    if copy is False:
        raise CopyRequiredError("a masked array cannot share memory with a tensor; pass copy=None to allow a copy")
    data = _tensor_of(np.asarray(array.data), True, device)
    mask = np.ma.getmaskarray(array)
    shown = _tensor_of(np.asarray(~mask), True, device)
    # torch says once in each process that MaskedTensor is a prototype: nothing that the caller could change.
    with modes.outside_modes():
        try:
            masked: torch.Tensor = quietly(MaskedTensor, data, shown)
            return masked
        except TypeError as error:
            raise UnsupportedArrayError(
                f"torch has no MaskedTensor of {dtypes.name_of(data.dtype)}; "
                "convert array.data and array.mask, or array.astype() of another dtype"
            ) from error


def _packed(array: np.ndarray[Any, Any]) -> torch.Tensor:
    if not array.ndim or array.shape[-1] % 2:
        raise UnsupportedArrayError(
            f"torch packs two 4-bit floats into each byte, and the last dimension of shape {array.shape} is odd; "
            "pad it first"
        )
    codes = torch.from_numpy(array.view(np.uint8) & np.uint8(15))
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(torch.float4_e2m1fn_x2)


def _no_dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return f"torch has no structured dtypes; convert each field: array[{dtype.names[0]!r}]"
    if dtype.kind in "OSUTMm":
        return f"torch has no dtype for {dtype} arrays; turn them into numbers first, with .astype()"
    return f"torch has no dtype for {dtype} arrays; convert with .astype() first"


def _why_not_shared(array: np.ndarray[Any, Any], facts: dtypes.DtypeFacts, device: torch.device) -> str:
    """Return the array as the subject of a sentence if torch cannot share its memory, else ""."""
    if device.type != "cpu":
        return f"an array that is to be on {device}"
    if not array.flags.writeable:
        return "a read-only array"
    if facts.values_per_element > 1:
        return f"{with_article(str(array.dtype))} array, of one value a byte,"
    if not array.dtype.isnative:
        return f"a {array.dtype.str} array of foreign byte order"
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        return "an array with negative or uneven strides"
    return ""
