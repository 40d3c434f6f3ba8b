"""The way back: the tensor of an array, whichever library it is of."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.from_numpy import tensor_from_numpy, usable_device
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array, is_subclass
from tensornp.core.lowlevel.quoted import quoted
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.core.tensor.weight import refused
from tensornp.errors import BadRequestError, CopyRequiredError, NotATensorError


@modes.unnoticed
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
        raise BadRequestError(f"copy must be True, False or None, got {quoted(copy)}")
    copy = None if copy is None else bool(copy)
    place = usable_device(device)
    is_scalar = is_subclass(type(array), np.generic)
    if is_scalar and copy is False:
        raise CopyRequiredError("a scalar of NumPy has no memory to share; pass copy=None to allow a copy")
    if is_array(array) or is_scalar:
        return tensor_from_numpy(array, copy, place)
    way_back = _way_back_of(array)
    if way_back is not None:
        return way_back(array, copy=copy, device=device)
    if not is_container(array):
        raise NotATensorError(
            f"to_tensor takes an array, or a dict, list, tuple or dataclass with arrays inside, not {refused(array)}"
        )
    return map_leaves(lambda leaf: to_tensor(leaf, copy=copy, device=device), array, leaf_type=_array_types())


def holds_arrays(container: Any) -> bool:
    """Return whether a container has anything in it of which `to_tensor` makes a tensor."""
    found: list[Any] = []
    map_leaves(found.append, container, leaf_type=_array_types())
    return bool(found)


def _array_types() -> tuple[type, ...]:
    return np.ndarray, np.generic, *_foreign_arrays().values()


def _foreign_arrays() -> dict[str, type]:
    """Return the array types of JAX and CuPy, as far as these have been imported."""
    kinds = {name: getattr(sys.modules.get(name), kind, None) for name, kind in (("jax", "Array"), ("cupy", "ndarray"))}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type)}


def _way_back_of(array: Any) -> Callable[..., Any] | None:
    """Return `from_jax` or `from_cupy` for an array of theirs, None for anything else."""
    # `isinstance` would ask what a weak proxy stands for, which may be gone.
    foreign = _foreign_arrays() if type(array) not in weakref.ProxyTypes else {}
    if isinstance(array, foreign.get("jax", ())):
        from tensornp.core.exchange.jax import from_jax

        return from_jax
    if isinstance(array, foreign.get("cupy", ())):
        from tensornp.core.exchange.cupy import from_cupy

        return from_cupy
    return None
