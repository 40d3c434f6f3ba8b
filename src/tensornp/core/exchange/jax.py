"""To JAX and back.

A copy is made by torch or NumPy before JAX sees it, because JAX's own copies are none: on a CPU,
`device_put(may_alias=False)` and `from_dlpack(copy=True)` alias their source, and `jnp.array` may read it after it has
returned (JAX 0.10.2; jax-ml/jax#37830).
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.budget import Budget
from tensornp.core.convert.from_numpy import tensor_from_numpy, usable_device
from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import plan, to_numpy
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
from tensornp.core.lowlevel.quoted import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import check_tensor, inspect
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.errors import BadRequestError, NoDataError, UnsupportedArrayError, UnsupportedTensorError


@never_compiled
def plan_jax(
    tensor: torch.Tensor, *, copy: bool | None = None, dtype: object = None, device: Any = None
) -> ConversionPlan:
    """Return how `to_jax` would convert `tensor` with the same arguments; nothing is executed and no value read.

    The `code` uses ``jax`` too. Raises as `to_jax` does, but for integers that turn out not to fit.
    """
    jax = import_library("jax", "JAX")
    check_tensor(tensor, "plan_jax")
    return _handover_to_jax(jax, tensor, copy, dtype, device).plan


@never_compiled
def to_jax(obj: Any, *, copy: bool | None = None, dtype: object = None, device: Any = None) -> Any:
    """Return the JAX array of a tensor, or the same container with JAX arrays in the place of its tensors.

    Parameters
    ----------
    obj : torch.Tensor, or a container of them, nested
        What is not a tensor inside a container stays as it is. A nested tensor becomes a list.
    copy : bool, optional
        None and True copy, because JAX takes its arrays for constants. False shares the memory of a dense, aligned
        tensor on a device that JAX has: JAX then sees every torch write, even in results that are still being
        computed, while compiled functions may keep the old values.
    dtype : optional
        None keeps every value, and bfloat16 and the float8 family as they are. Where ``jax_enable_x64`` is off, 64-bit
        integers become 32-bit ones if all of them fit, and float64 and complex128 are refused. Any other dtype
        converts, even where that loses values: `plan_jax` says so beforehand.
    device : jax.Device or str, optional
        Where the array is to be; ``"gpu"`` is the first of its kind. None is the tensor's own device, or the CPU where
        JAX does not have that one.

    Raises
    ------
    MissingLibraryError
        If JAX is not installed.
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError, UnsupportedTensorError, TooLargeError, NotATensorError
        As `to_numpy` does; UnsupportedTensorError also for values that JAX has only with ``jax_enable_x64``.

    Notes
    -----
    A dense GPU tensor is copied on its GPU if JAX works there; all else goes through the host. Sharing ends the
    resizability of a CPU storage; that of a GPU stays, so that freeing it leaves the array on freed memory.
    """
    jax = import_library("jax", "JAX")
    budget = Budget(None)

    def convert(tensor: torch.Tensor) -> Any:
        handover = _handover_to_jax(jax, tensor, copy, dtype, device)
        if is_by_dlpack(handover):
            return by_dlpack(handover, tensor, jax.dlpack.from_dlpack, lambda array: array.unsafe_buffer_pointer())
        budget.take(handover.plan.nbytes_copied)
        arrays = to_numpy(tensor, copy=True, dtype=handover.asked)
        # JAX may keep this very memory, which nobody else holds.
        return map_leaves(
            lambda array: jax.device_put(_fitted(array, handover.plan.dtype), handover.target),
            arrays,
            leaf_type=np.ndarray,
        )

    return map_container(convert, obj, torch.Tensor, "to_jax takes a tensor")


@never_compiled
def from_jax(obj: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of a JAX array, or the same container with tensors in the place of its JAX arrays.

    Parameters
    ----------
    obj : jax.Array, or a container of them, nested
        An array that is sharded over several devices is gathered on the host.
    copy : bool, optional
        None and True copy, because JAX arrays never change. False shares through DLPack: a write to such a tensor
        breaks JAX's promise that they do not, so do not write.
    device : optional
        Where the tensor is to be; None is the array's own GPU if torch works there, otherwise the CPU.

    Raises
    ------
    MissingLibraryError
        If JAX is not installed.
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError
        If the array was deleted or donated, is being traced, or is held by other processes too.
    UnsupportedArrayError
        If torch has no dtype for the array.
    NotATensorError
        If `obj` is neither a JAX array nor such a container.
    """
    jax = import_library("jax", "JAX")

    def convert(array: Any) -> Any:
        if isinstance(array, jax.core.Tracer):
            raise NoDataError("JAX is tracing this array, so it has no values yet; convert outside of jit or grad")
        if array.is_deleted():
            raise NoDataError("this JAX array was deleted or donated to a compiled function; convert it before that")
        if not array.is_fully_addressable:
            raise NoDataError("other processes hold a part of this JAX array; gather it first")
        where = list(array.devices())
        own = torch_device(where[0].platform, where[0].local_hardware_id) if len(where) == 1 else None
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            raise UnsupportedArrayError("a JAX key has no values of its own; convert jax.random.key_data(key)")
        target = own if device is None else device
        address = array.unsafe_buffer_pointer() if own else 0
        shared = shared_tensor("JAX", array, address, own, target, must=copy is False)
        if shared is None:
            return tensor_from_numpy(np.asarray(array), True, usable_device(target))
        with modes.undisturbed():
            return shared if copy is False else shared.to(target, copy=True)

    return map_container(convert, obj, jax.Array, "from_jax takes a jax.Array")


def _handover_to_jax(jax: Any, tensor: torch.Tensor, copy: bool | None, dtype: object, device: Any) -> Handover:
    info = inspect(tensor)
    name = dtypes.name_of(info.dtype)
    is_short_float = name == "bfloat16" or name.startswith("float8")
    asked = name if dtype is None and is_short_float else dtype
    free, copied = compared_plans(tensor, copy, asked, "JAX")
    own, target = _jax_devices(jax, info, device)
    try:
        holds = np.dtype(jax.typeof(np.empty(0, copied.dtype)).dtype)
    except TypeError as error:
        raise BadRequestError(f"JAX has no {copied.dtype} arrays; pass another dtype") from error
    if holds != copied.dtype:
        only = f"JAX has {copied.dtype} only with jax_enable_x64"
        if dtype is not None or copied.dtype.kind not in "iu":
            raise UnsupportedTensorError(f"{only}; enable that, or pass dtype='{holds}' and lose what does not fit")
        if copy is not False:
            note = f"{only}: each value is checked to fit {holds}, and one that does not is refused"
            copied = plan(tensor, copy=True, dtype=holds.name)
            copied = replace(copied, exact=True, warnings=(*copied.warnings, note))
    devices = jax.local_devices(backend=target.platform)
    recipient = Recipient(
        library="JAX",
        is_constant=True,
        reaches=own == target,
        lends=is_lent(info.dtype),
        holds=holds,
        share="jax.dlpack.from_dlpack({})",
        place=f'jax.device_put({{}}, jax.local_devices(backend="{target.platform}")[{devices.index(target)}])',
        keeps_order=info.is_contiguous or _takes_columns(),
    )
    return Handover(decide(recipient, info, free, copied, copy), info, asked, target)


@functools.cache
def _takes_columns() -> bool:
    """Return whether this JAX reads what lies column by column as it lies; 0.6 does not, and says nothing."""
    jax = import_library("jax", "JAX")
    with modes.undisturbed():
        columns = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32, device="cpu").T
        return bool(np.asarray(jax.dlpack.from_dlpack(columns))[1, 0] == columns[1, 0].item())


def _jax_devices(jax: Any, info: TensorInfo, device: Any) -> tuple[Any, Any]:
    """Return the device of JAX that the tensor is on, or None, and the one that the array is to be on."""

    def local(kind: str) -> list[Any]:
        try:
            return list(jax.local_devices(backend=kind))
        except RuntimeError:
            return []

    kind = {"cpu": "cpu", "cuda": "gpu"}.get(info.device.type)
    index = info.device.index or 0
    own = next((one for one in local(kind) if one.local_hardware_id == index), None) if kind else None
    if isinstance(device, str):
        found = local(device)
        if not found:
            raise BadRequestError(f"JAX has no device {quoted(device)} here; pass one of jax.devices()")
        return own, found[0]
    if device is not None and not isinstance(device, jax.Device):
        raise BadRequestError(f"device={quoted(device)} is no device of JAX; pass one of jax.devices()")
    return own, device or own or (local("cpu") or jax.local_devices())[0]


def _fitted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return integers in the 32 bits that JAX has for them; anything else comes in its dtype already."""
    if array.dtype == dtype:
        return array
    limits = np.iinfo(dtype)
    if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
        raise UnsupportedTensorError(
            f"a value from {array.min():,} to {array.max():,} does not fit the {dtype} that JAX has without "
            f"jax_enable_x64; enable that, or pass dtype='{dtype}' to cut it off"
        )
    return array.astype(dtype)
