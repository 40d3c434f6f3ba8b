"""Convert tensors to arrays of JAX and CuPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch

from tensornp import errors
from tensornp.core.convert.plan import flag
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.quiet import plain
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.containers import is_container, map_leaves
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.tensor.weight import refused


@never_compiled
def to_jax(t: Any, *, copy: bool | None = None) -> Any:
    """Return the JAX array of a tensor, or the same container with JAX arrays instead of tensors.

    Parameters
    ----------
    t : torch.Tensor or container of tensors
    copy : bool, optional
        None and True copy, because JAX assumes that its arrays never change. False shares the memory of a dense,
        aligned tensor through DLPack, or raises `CopyRequiredError`.

    Notes
    -----
    - bfloat16 and float8 keep their dtype. Without ``jax_enable_x64``, only integers of 64 bits that fit 32 convert.
    - A copy goes through the host to JAX's default device.
    - If memory is shared, JAX sees every write.
    """
    convert = _shared_with_jax if flag("copy", copy) is False else _copied_to_jax
    jax = _import("jax", "JAX")
    return _mapped(lambda tensor: convert(jax, tensor), t, "to_jax")


@never_compiled
def to_cupy(t: Any) -> Any:
    """Return the CuPy array of a tensor, or the same container with CuPy arrays instead of tensors.

    Raises
    ------
    MissingLibraryError
        If CuPy is not installed, or finds no GPU.

    Notes
    -----
    - The array is a copy through the host. ``cupy.from_dlpack(t.detach())`` shares the memory of a GPU tensor.
    - bfloat16 and float8 are widened to float32.
    """
    cupy = _import("cupy", "CuPy")
    if not cupy.is_available():
        raise errors.MissingLibraryError("CuPy finds no GPU; convert with to_numpy instead")

    def convert(tensor: torch.Tensor) -> Any:
        return map_leaves(cupy.asarray, to_numpy(tensor, copy=True), is_array)

    return _mapped(convert, t, "to_cupy")


def _copied_to_jax(jax: Any, tensor: torch.Tensor) -> Any:
    name = dtypes.name_of(inspect(tensor).dtype)
    is_short_float = name == "bfloat16" or name.startswith("float8")

    def placed(array: Any) -> Any:
        placed = jax.device_put(array)
        is_integer = array.dtype.kind in "iu"
        if placed.dtype != array.dtype and not (is_integer and np.array_equal(placed, array)):
            raise errors.UnsupportedTensorError(
                f"{array.dtype} does not fit JAX's {placed.dtype}; set jax_enable_x64 or convert the tensor first"
            )
        return placed

    # The copy is made before JAX sees it: on a CPU, JAX's own copies may alias their source (jax-ml/jax#37830).
    return map_leaves(placed, to_numpy(tensor, copy=True, dtype=name if is_short_float else None), is_array)


def _shared_with_jax(jax: Any, tensor: torch.Tensor) -> Any:
    if inspect(tensor).device.type == "cpu":
        # Raises if the memory cannot be shared; locks the storage, which DLPack does not.
        to_numpy(tensor, copy=False, writeable=True)
    with modes.outside_modes():
        values = plain(tensor)
        try:
            array = jax.dlpack.from_dlpack(values)
        except (RuntimeError, ValueError, TypeError, BufferError) as error:
            raise errors.CopyRequiredError(
                f"the tensor cannot be shared: {error}; pass copy=None to allow a copy"
            ) from error
        if array.unsafe_buffer_pointer() != values.data_ptr():
            raise errors.CopyRequiredError(
                "JAX copies this tensor, because of its layout; pass copy=None to allow a copy"
            )
        return array


def _import(name: str, library: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise errors.MissingLibraryError(f"{library} is not installed; install {name}") from error


def _mapped(convert: Callable[[torch.Tensor], Any], obj: Any, name: str) -> Any:
    if not (is_tensor_like(obj) or is_container(obj)):
        raise errors.NotATensorError(f"{name} takes a tensor or a container of tensors, not {refused(obj)}")
    return map_leaves(convert, obj, is_tensor_like)
