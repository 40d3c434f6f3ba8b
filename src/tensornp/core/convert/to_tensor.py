"""Convert arrays of any library to tensors, and tensors to arrays of JAX and CuPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from tensornp import errors
from tensornp.core.convert.plan import flag
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.attributes import error_text, is_array, is_tensor, refused
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.lowlevel.text import legible, quoted
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.containers import is_container, map_leaves
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like

_MAX_REASON = 120
_PROTOCOLS = ("__dlpack__", "__array__", "__array_interface__")


@outside_modes
def to_tensor(array: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of an array, or the same container with tensors instead of arrays.

    Parameters
    ----------
    array : array, or a container of arrays
        A NumPy array or scalar, or any object with ``__dlpack__`` or ``__array__``: JAX, CuPy, PIL, pandas. ml_dtypes
        arrays keep their dtype and bits.
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
    copy = flag("copy", copy)
    is_scalar = issubclass(type(array), np.generic)
    if is_scalar and copy is False:
        raise errors.CopyRequiredError("a NumPy scalar has no memory to share; pass copy=None to allow a copy")
    if is_array(array) or is_scalar:
        return tensor_from_numpy(array, copy, usable_device(device))
    if _is_array_like(array):
        return _from_protocol(array, copy, device)
    if not is_container(array):
        raise errors.NotATensorError(f"to_tensor takes an array or a container of arrays, not {refused(array)}")
    return map_leaves(lambda leaf: to_tensor(leaf, copy=copy, device=device), array, _is_array_like)


def _is_array_like(obj: Any) -> bool:
    return not is_tensor(obj) and any(hasattr(type(obj), name) for name in _PROTOCOLS)


def _from_protocol(array: Any, copy: bool | None, device: Any) -> torch.Tensor:
    try:
        is_on_cpu = not hasattr(array, "__dlpack__") or array.__dlpack_device__()[0] == 1
        if is_on_cpu and any(hasattr(array, name) for name in _PROTOCOLS[1:]):
            values: Any = np.asarray(array)
        else:
            values = from_dlpack(array)
    except Exception as error:
        raise errors.UnsupportedArrayError(
            f"{type(array).__name__} gives no array ({error_text(error)}); convert it to NumPy first"
        ) from error
    if not isinstance(values, torch.Tensor):
        return tensor_from_numpy(values, copy, usable_device(device))
    place = values.device if device is None else usable_device(device)
    if copy is False and place != values.device:
        raise errors.CopyRequiredError(f"an array on {values.device} cannot share memory with {place}; pass copy=None")
    return values.to(place, copy=bool(copy))


@outside_modes
def tensor_from_numpy(
    array: np.ndarray[Any, Any] | np.generic, copy: bool | None, device: torch.device
) -> torch.Tensor:
    if isinstance(array, np.ma.MaskedArray):
        raise errors.UnsupportedArrayError(
            "a masked array hides elements; convert array.filled(), or array.data for all"
        )
    given = np.asarray(array)
    facts = facts_of(given)
    obstacle = why_copied(given, str(device))
    if copy is False and obstacle:
        raise errors.CopyRequiredError(f"{obstacle} cannot share memory with a tensor; pass copy=None to allow a copy")
    return quietly(tensor_over(given, facts.name).to, device, copy=bool(copy or obstacle))


@outside_modes
def usable_device(device: Any) -> torch.device:
    """Return a torch device, the CPU for None; raise if it cannot be used here."""
    try:
        place = torch.device("cpu" if device is None else device)
        if place.type != "cpu":
            torch.empty(0, device=place)
        return place
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        reason = legible(str(error).partition("\n")[0][:_MAX_REASON])
        raise errors.BadRequestError(
            f"device={quoted(device)} cannot be used here ({reason}); pass another, or None for the CPU"
        ) from error


def facts_of(array: np.ndarray[Any, Any]) -> dtypes.DtypeFacts:
    """Return the facts of an array's dtype; raise errors.UnsupportedArrayError if torch has no such dtype."""
    facts = dtypes.KNOWN.get(array.dtype.name) or dtypes.EXTENSIONS.get(array.dtype.name)
    # torch packs two 4-bit floats into each byte.
    if facts is None or facts.values_per_element > 1 or not hasattr(torch, facts.name):
        cure = f"each field, array[{array.dtype.names[0]!r}]" if array.dtype.names else "to numbers, with .astype()"
        raise errors.UnsupportedArrayError(f"torch has no dtype for {array.dtype} arrays; convert {cure}")
    return facts


def tensor_over(elements: np.ndarray[Any, Any], name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over elements or their bits, to read it.

    It is a copy if torch has no such strides or order of bytes.
    """
    if not elements.dtype.isnative or any(step < 0 or step % elements.itemsize for step in elements.strides):
        elements = np.array(elements, elements.dtype.newbyteorder("="), order="C")
    facts = dtypes.KNOWN[name]
    # `view` also gives NumPy's several C types of one size (longlong) the one name that torch knows.
    tensor = quietly(torch.from_numpy, elements.view(np.dtype(facts.bits or facts.numpy or "uint8")))
    return tensor if facts.numpy else tensor.view(getattr(torch, name))


def why_copied(array: np.ndarray[Any, Any] | np.generic, device: str = "cpu") -> str:
    """Return why `tensor_from_numpy` copies an array; empty if it shares memory."""
    given = np.asarray(array)
    if device != "cpu":
        return f"an array that is to be on {device}"
    if not given.flags.writeable:
        return "a read-only array"
    if not given.dtype.isnative:
        return f"a {given.dtype.str} array of foreign byte order"
    if any(stride < 0 or stride % given.itemsize for stride in given.strides):
        return "an array with negative or uneven strides"
    return ""


@outside_modes
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


@outside_modes
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
    values = plain(tensor)
    try:
        array = jax.dlpack.from_dlpack(values)
    except (RuntimeError, ValueError, TypeError, BufferError) as error:
        raise errors.CopyRequiredError(
            f"the tensor cannot be shared: {error}; pass copy=None to allow a copy"
        ) from error
    if array.unsafe_buffer_pointer() != values.data_ptr():
        raise errors.CopyRequiredError("JAX copies this tensor, because of its layout; pass copy=None to allow a copy")
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
