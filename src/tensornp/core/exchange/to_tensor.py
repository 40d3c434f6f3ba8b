"""Convert arrays of any library to tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from tensornp.core.convert.from_numpy import tensor_from_numpy, usable_device
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_array
from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.core.tensor.weight import refused
from tensornp.errors import BadRequestError, CopyRequiredError, NotATensorError, UnsupportedArrayError

_PROTOCOLS = ("__dlpack__", "__array__", "__array_interface__")


class _ArrayProtocol(type):
    def __subclasscheck__(cls, other: type) -> bool:
        return not issubclass(other, torch.Tensor) and any(hasattr(other, name) for name in _PROTOCOLS)


class ArrayLike(metaclass=_ArrayProtocol):
    """Base, for `issubclass`, of every class with an array protocol, except tensors."""


@modes.outside_modes
def to_tensor(array: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of an array, or the same container with tensors instead of arrays.

    Parameters
    ----------
    array : array, or a container of arrays
        A NumPy array or scalar, or any object with ``__dlpack__`` or ``__array__``: JAX, CuPy, PIL, pandas. ml_dtypes
        arrays keep their dtype and bits. A masked array becomes a MaskedTensor.
    copy : bool, optional
        None shares memory if possible, True always copies, False never copies. Read-only arrays, such as those of JAX,
        are copied, because torch has no read-only tensors.
    device : optional
        Device of the tensor. None is the CPU, or the device of an array that lies on one.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    UnsupportedArrayError
        If torch has no dtype for the array.
    NotATensorError
        If `array` is neither an array nor a container.
    """
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise BadRequestError(f"copy must be True, False or None, got {quoted(copy)}")
    copy = None if copy is None else bool(copy)
    is_scalar = issubclass(type(array), np.generic)
    if is_scalar and copy is False:
        raise CopyRequiredError("a NumPy scalar has no memory to share; pass copy=None to allow a copy")
    if is_array(array) or is_scalar:
        return tensor_from_numpy(array, copy, usable_device(device))
    if issubclass(type(array), ArrayLike):
        return _tensor_of(array, copy, device)
    if not is_container(array):
        raise NotATensorError(f"to_tensor takes an array or a container of arrays, not {refused(array)}")
    return map_leaves(lambda leaf: to_tensor(leaf, copy=copy, device=device), array, leaf_type=ArrayLike)


def holds_arrays(container: Any) -> bool:
    """Return whether a container holds anything that `to_tensor` converts."""
    found: list[Any] = []
    map_leaves(found.append, container, leaf_type=ArrayLike)
    return bool(found)


def _tensor_of(array: Any, copy: bool | None, device: Any) -> torch.Tensor:
    try:
        is_on_cpu = not hasattr(array, "__dlpack__") or array.__dlpack_device__()[0] == 1
        if is_on_cpu and any(hasattr(array, name) for name in _PROTOCOLS[1:]):
            values: Any = np.asarray(array)
        else:
            with modes.outside_modes():
                values = from_dlpack(array)
    except Exception as error:
        raise UnsupportedArrayError(
            f"{type(array).__name__} gives no array ({error_text(error)}); convert it to NumPy first"
        ) from error
    if not isinstance(values, torch.Tensor):
        return tensor_from_numpy(values, copy, usable_device(device))
    place = values.device if device is None else usable_device(device)
    if copy is False and place != values.device:
        raise CopyRequiredError(f"an array on {values.device} cannot share memory with {place}; pass copy=None")
    with modes.outside_modes():
        return values.to(place, copy=bool(copy))
