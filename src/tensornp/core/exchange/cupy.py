"""To CuPy and back: its arrays are on a GPU and always writeable."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.from_numpy import tensor_from_numpy, usable_device
from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.exchange.dlpack import (
    Handover,
    by_dlpack,
    compared_plans,
    import_library,
    is_by_dlpack,
    is_lent,
    map_container,
    shared_tensor,
    torch_device,
)
from tensornp.core.exchange.handover import Recipient, decide
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.info import check_tensor, inspect
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.errors import BadRequestError


@never_compiled
def plan_cupy(tensor: torch.Tensor, *, copy: bool | None = None, dtype: object = None) -> ConversionPlan:
    """Return how `to_cupy` would convert `tensor` with the same arguments; nothing is executed and no value read.

    The `code` uses ``cupy`` too. Raises as `to_cupy` does.
    """
    cupy = import_library("cupy", "CuPy")
    check_tensor(tensor, "plan_cupy")
    return _handover_to_cupy(cupy, tensor, copy, dtype).plan


@never_compiled
def to_cupy(obj: Any, *, copy: bool | None = None, dtype: object = None) -> Any:
    """Return the CuPy array of a tensor, or the same container with CuPy arrays in the place of its tensors.

    It is on the GPU of the tensor, or on CuPy's current one if the tensor is on no GPU.

    Parameters
    ----------
    obj : torch.Tensor, or a container of them, nested
        What is not a tensor inside a container stays as it is. A nested tensor becomes a list.
    copy : bool, optional
        None and True copy, because CuPy has no read-only arrays. False shares the memory of a strided GPU tensor:
        each side sees the other's writes, and autograd does not see those of CuPy.
    dtype : optional
        As in `to_numpy`, but for the dtypes of ml_dtypes: bfloat16 and the float8 family are always widened.

    Raises
    ------
    MissingLibraryError
        If CuPy is not installed, or finds no GPU.
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError, UnsupportedTensorError, NotATensorError
        As `to_numpy` does.

    Notes
    -----
    A strided GPU tensor is copied on its GPU; all else goes through the host. Nothing locks a shared storage: freeing
    it in torch leaves the array on freed memory.
    """
    cupy = import_library("cupy", "CuPy")

    def convert(tensor: torch.Tensor) -> Any:
        handover = _handover_to_cupy(cupy, tensor, copy, dtype)
        with cupy.cuda.Device(handover.target) if handover.target is not None else nullcontext():
            if is_by_dlpack(handover):
                return by_dlpack(handover, tensor, cupy.from_dlpack, lambda array: array.data.ptr)
            return map_leaves(cupy.asarray, to_numpy(tensor, copy=True, dtype=dtype), leaf_type=np.ndarray)

    return map_container(convert, obj, torch.Tensor, "to_cupy takes a tensor")


@never_compiled
def from_cupy(obj: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of a CuPy array, or the same container with tensors in the place of its CuPy arrays.

    Parameters
    ----------
    obj : cupy.ndarray, or a container of them, nested
        What is not a CuPy array inside a container stays as it is.
    copy : bool, optional
        As in `to_tensor`: None shares where that is possible and copies where not, True always copies, False never
        copies. Shared, each side sees the other's writes.
    device : optional
        Where the tensor is to be; None is the array's own GPU if torch works there, otherwise the CPU.

    Raises
    ------
    MissingLibraryError
        If CuPy is not installed, or finds no GPU.
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    UnsupportedArrayError
        If torch has no dtype for the array.
    NotATensorError
        If `obj` is neither a CuPy array nor such a container.
    """
    cupy = import_library("cupy", "CuPy")

    def convert(array: Any) -> Any:
        own = torch_device("gpu", array.device.id)
        target = own if device is None else device
        # torch 2.13 aborts the process at negative strides (pytorch#188023), and CuPy rounds uneven ones.
        is_even = all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)
        obstacle = "" if is_even else "its strides are negative or uneven"
        shared = shared_tensor("CuPy", array, array.data.ptr, own, target, must=copy is False, obstacle=obstacle)
        if shared is None:
            return tensor_from_numpy(cupy.asnumpy(array), None, usable_device(target))
        with modes.undisturbed():
            return shared.to(target, copy=bool(copy))

    return map_container(convert, obj, cupy.ndarray, "from_cupy takes a cupy.ndarray")


def _handover_to_cupy(cupy: Any, tensor: torch.Tensor, copy: bool | None, dtype: object) -> Handover:
    info = inspect(tensor)
    free, copied = compared_plans(tensor, copy, dtype, "CuPy")
    facts = dtypes.KNOWN.get(copied.dtype.name)
    if facts is None or facts.numpy is None:
        raise BadRequestError(f"CuPy is given no {copied.dtype} arrays; pass dtype=None to widen them exactly")
    reaches = info.device.type == "cuda" and (info.device.index or 0) < cupy.cuda.runtime.getDeviceCount()
    recipient = Recipient(
        library="CuPy",
        is_constant=False,
        reaches=reaches,
        lends=is_lent(info.dtype),
        holds=copied.dtype,
        share="cupy.from_dlpack({})",
        place="cupy.asarray({})",
    )
    target = info.device.index or 0 if reaches else None
    return Handover(decide(recipient, info, free, copied, copy), info, dtype, target)
