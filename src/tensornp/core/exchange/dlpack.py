"""What both libraries need: finding them, comparing plans, and sharing by DLPack where an address proves it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import plan, plan_from, to_numpy
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.quoted import quoted
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.tensor.steps import Step
from tensornp.core.tensor.weight import refused
from tensornp.errors import (
    BadRequestError,
    CopyRequiredError,
    MissingLibraryError,
    NotATensorError,
    UnsupportedTensorError,
)

_REFUSALS = (RuntimeError, ValueError, TypeError, BufferError)
"""What DLPack's two sides raise for memory that they do not take."""


class Handover(NamedTuple):
    """What to do with one tensor: the plan, what `to_numpy` is asked for, and the library's device."""

    plan: ConversionPlan
    info: TensorInfo
    asked: object
    target: Any


def import_library(name: str, library: str) -> Any:
    try:
        module = import_module(name)
    except ImportError as error:
        # Why an installed one cannot be imported is worth a look; that there is none is all said.
        cause = None if isinstance(error, ModuleNotFoundError) else error
        raise MissingLibraryError(
            f"{library} is not installed here; install {name} to convert to it and back"
        ) from cause
    if name == "cupy" and not module.is_available():
        raise MissingLibraryError("CuPy finds no GPU that it can use here; convert with to_numpy and to_tensor instead")
    return module


def map_container(convert: Callable[[Any], Any], obj: Any, leaf_type: type, what: str) -> Any:
    # A tracer of JAX is an array by what it says of itself alone.
    if leaf_type is not torch.Tensor and isinstance(obj, leaf_type):
        return convert(obj)
    is_leaf = is_tensor_like(obj) if leaf_type is torch.Tensor else issubclass(type(obj), leaf_type)
    if not (is_leaf or is_container(obj)):
        raise NotATensorError(f"{what}, or a dict, list, tuple or dataclass with such inside, not {refused(obj)}")
    return map_leaves(convert, obj, leaf_type=leaf_type)


def compared_plans(
    tensor: torch.Tensor, copy: object, dtype: object, library: str
) -> tuple[ConversionPlan, ConversionPlan]:
    """Return the plans of `to_numpy` that `decide` compares."""
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise BadRequestError(f"copy must be True, False or None, got {quoted(copy)}")
    copied = plan(tensor, copy=True, dtype=dtype)
    if "mask" in copied.steps:
        raise UnsupportedTensorError(f"{library} has no masked arrays; convert t.get_data() and t.get_mask()")
    if not copied.dtype.isnative:
        raise BadRequestError(f"{library} has no arrays of foreign byte order; pass a native dtype")
    # Whoever passes copy=False is told what FSDP then cannot do.
    info = dataclasses.replace(inspect(tensor), is_unsharded=False)
    return plan_from(info, writeable=True, dtype=dtype), copied


@functools.cache
def is_lent(dtype: torch.dtype) -> bool:
    """Return whether this torch hands out elements of `dtype` by DLPack: the float8 family since 2.9."""
    with modes.undisturbed():
        try:
            quietly(torch.empty, 1, dtype=dtype, device="cpu").__dlpack__()
        except _REFUSALS:
            return False
        return True


def is_by_dlpack(handover: Handover) -> bool:
    return handover.plan.shares_memory or (
        handover.info.device.type != "cpu" and handover.info.numel > 0 and Step.TO_HOST not in handover.plan.steps
    )


def by_dlpack(
    handover: Handover, tensor: torch.Tensor, take: Callable[[Any], Any], address_of: Callable[[Any], int]
) -> Any:
    """Return the array over the tensor's own memory, proven by its address, or over a copy on the same device."""
    planned = handover.plan
    if planned.shares_memory and handover.info.device.type == "cpu":
        # Locks the storage: DLPack does not, and resizing it would leave the array on freed memory.
        to_numpy(tensor, copy=False, writeable=True, dtype=handover.asked)
    with modes.undisturbed():
        # An alias of our own, so that `set_` on the tensor takes nothing away from the array.
        values = plain(tensor)
        if not planned.shares_memory:
            is_widened = Step.WIDEN in planned.steps
            return take(values.to(getattr(torch, planned.dtype.name)) if is_widened else values.clone())
        try:
            array = take(values)
        except _REFUSALS as error:
            raise CopyRequiredError(f"the tensor cannot be shared: {error}; pass copy=None to allow a copy") from error
    # Asked again, because a lazily cloned storage gets memory of its own when it is first shared.
    span = inspect(tensor).storage
    if span is None or address_of(array) != span.address:
        raise CopyRequiredError("DLPack gave other memory than the tensor's; pass copy=None to allow a copy")
    return array


def torch_device(platform: str, index: int) -> torch.device | None:
    """Return torch's name for a device of another library; None if torch does not work there."""
    if platform == "cpu":
        return torch.device("cpu")
    is_there = platform in ("gpu", "cuda", "rocm") and torch.cuda.is_available() and index < torch.cuda.device_count()
    return torch.device("cuda", index) if is_there else None


def shared_tensor(
    library: str, array: Any, address: int, own: torch.device | None, target: Any, *, must: bool, obstacle: str = ""
) -> torch.Tensor | None:
    """Return the tensor over an array's own memory, proven by its address; None, or an error if it `must` be."""
    with modes.undisturbed():
        if own is None:
            obstacle = "torch does not work where it is"
        elif must and torch.empty(0, device=target).device != own:
            obstacle = f"the tensor is to be on {target}"
        elif not obstacle:
            try:
                tensor: torch.Tensor = from_dlpack(array)
                info = inspect(tensor)
                is_proven = not info.numel or (info.storage is not None and info.storage.address == address)
                if is_proven and dtypes.name_of(info.dtype) == array.dtype.name:
                    return tensor
                obstacle = "DLPack gives other memory or another dtype"
            except _REFUSALS as error:
                obstacle = str(error)
    if must:
        raise CopyRequiredError(
            f"this {library} array cannot share memory with torch, because {obstacle}; pass copy=None to allow a copy"
        )
    return None
