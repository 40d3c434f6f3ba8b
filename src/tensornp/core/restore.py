"""The way back: the tensor of an array, bit for bit, ml_dtypes and masked arrays included."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch

from tensornp.core import dtypes, float4, torch_private
from tensornp.core.containers import is_container, map_leaves
from tensornp.core.instances import class_name
from tensornp.core.unheard import unheard
from tensornp.errors import BadRequestError, CopyRequiredError, NotATensorError, UnsupportedArrayError


@torch_private.unnoticed
def to_tensor(array: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of a NumPy array, or the same container with tensors in the place of its arrays.

    Parameters
    ----------
    array : numpy.ndarray, NumPy scalar, JAX or CuPy array, or a container of them, nested
        ml_dtypes arrays keep their dtype, bits identical; those of one 4-bit float a byte are packed by twos. A masked
        array becomes a MaskedTensor, always copied.
    copy : bool, optional
        None shares memory where that is possible and copies where not, True always copies, False never copies.
        Read-only arrays are copied, because torch has no read-only tensors.
    device : optional
        Where the tensor is to be; another device than the CPU always copies. None is the CPU, or where a JAX or CuPy
        array is.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    UnsupportedArrayError
        If torch has no dtype for the array.
    NotATensorError
        If `array` is neither an array nor such a container.
    """
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise BadRequestError(f"copy={copy!r} means nothing here; pass True, False or None")
    copy = None if copy is None else bool(copy)
    try:
        with torch_private.undisturbed():
            place = torch.device("cpu" if device is None else device)
            if place.type != "cpu":
                torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadRequestError(
            f"device={device!r} cannot be used here ({reason}); pass another, or None for the CPU"
        ) from error
    if isinstance(array, np.ma.MaskedArray):
        return _masked_tensor(array, copy, place)
    if isinstance(array, (np.ndarray, np.generic)):
        return _tensor_of(np.asarray(array), copy, place)
    door = _door_of(array)
    if door is not None:
        return door(array, copy=copy, device=device)
    if not is_container(array):
        raise NotATensorError(
            "to_tensor takes an array, or a dict, list, tuple or dataclass with arrays inside, "
            f"not '{class_name(type(array))}'"
        )
    leaf_type = (np.ndarray, np.generic, *_foreign_arrays().values())
    return map_leaves(lambda leaf: to_tensor(leaf, copy=copy, device=device), array, leaf_type=leaf_type)


def _foreign_arrays() -> dict[str, type]:
    """Return the array types of JAX and CuPy, as far as these have been imported."""
    kinds = {name: getattr(sys.modules.get(name), kind, None) for name, kind in (("jax", "Array"), ("cupy", "ndarray"))}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type)}


def _door_of(array: Any) -> Callable[..., Any] | None:
    """Return `from_jax` or `from_cupy` for an array of theirs, None for anything else."""
    for name, kind in _foreign_arrays().items():
        if isinstance(array, kind):
            door: Callable[..., Any] = getattr(import_module(f"tensornp.core.doors.{name}"), f"from_{name}")
            return door
    return None


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
    with torch_private.undisturbed():
        if facts.values_per_element > 1:
            return _packed(array).to(device)
        # `view` also gives NumPy's several C types of one size (longlong) the one name that torch knows.
        bits = array.view(np.dtype(facts.bits or facts.numpy))
        tensor = torch.from_numpy(bits)
        return (tensor if facts.numpy else tensor.view(getattr(torch, facts.name))).to(device)


def _masked_tensor(array: Any, copy: bool | None, device: torch.device) -> Any:
    from torch.masked import MaskedTensor

    if copy is False:
        raise CopyRequiredError("a masked array cannot share memory with a tensor; pass copy=None to allow a copy")
    data = _tensor_of(np.asarray(array.data), True, device)
    shown = _tensor_of(~np.ma.getmaskarray(array), True, device)
    # torch says once in each process that MaskedTensor is a prototype: nothing that the caller could change.
    with torch_private.undisturbed():
        try:
            return MaskedTensor(data, shown)
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
    return float4.pack(array)


def _no_dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return f"torch has no structured dtypes; convert each field: array[{dtype.names[0]!r}]"
    if dtype.kind in "OSUTMm":
        return f"torch has no dtype for {dtype} arrays; turn them into numbers first, with .astype()"
    return f"torch has no dtype for {dtype} arrays; convert with .astype() first"


def _why_not_shared(array: np.ndarray[Any, Any], facts: dtypes.DtypeFacts, device: torch.device) -> str:
    """Return what keeps torch from sharing the array's memory, as the subject of a sentence; empty if nothing does."""
    if device.type != "cpu":
        return f"an array that is to be on {device}"
    if not array.flags.writeable:
        return "a read-only array"
    if facts.values_per_element > 1:
        return f"a {array.dtype} array, of one value a byte,"
    if not array.dtype.isnative:
        return f"a {array.dtype.str} array of foreign byte order"
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        return "an array with negative or uneven strides"
    return ""


unheard(globals())
