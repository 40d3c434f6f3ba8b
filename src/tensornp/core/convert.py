"""The only place that turns a tensor into an array, and back: it carries out what a plan says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tensornp.core import dtypes, torch_private
from tensornp.core.containers import map_leaves
from tensornp.core.info import inspect
from tensornp.core.pages import with_page_protection
from tensornp.core.plan import ConversionPlan, decide
from tensornp.core.steps import Step
from tensornp.errors import CopyRequiredError, NotATensorError, UnsupportedArrayError

_NATIVE = {getattr(torch, facts.name) for facts in dtypes.KNOWN.values() if facts.numpy and hasattr(torch, facts.name)}


def to_numpy(obj: Any, *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None) -> Any:
    """Return the NumPy array of a tensor, or the same container with arrays in the place of its tensors.

    Parameters
    ----------
    obj : torch.Tensor, or dict, list, tuple or namedtuple of them, nested
        What is not a tensor inside a container stays as it is.
    copy : bool, optional
        As in `numpy.asarray`: None shares memory where that is possible and copies where not, True always copies,
        False never copies.
    writeable : bool, optional
        None gives a read-only array where memory is shared and a writeable one where it is copied. True asks for a
        writeable array, shared where that is possible. False always gives a read-only one.
    dtype : optional
        None keeps every value exactly; bfloat16 and the float8 family, which NumPy does not have, are widened to
        float32, or come as the zero-copy ml_dtypes array where ``copy=False`` or their own name is passed. Any other
        dtype converts, even where that loses values: `plan` says so beforehand.

    Returns
    -------
    numpy.ndarray, or the container
        Of the tensor's shape; shared memory keeps the tensor's strides.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError
        If there are no values: meta, fake, uninitialized, freed, or inside a tracer or transform.
    UnsupportedTensorError
        If that kind of tensor has no conversion; the message names what to convert instead.
    NotATensorError
        If `obj` is neither a tensor nor such a container.

    Notes
    -----
    Sharing an ordinary CPU tensor costs some microseconds and ends the storage's resizability, as every `Tensor.numpy`
    does. Other devices synchronize and transfer all elements.
    """
    if dtype is None and (copy is None or copy is False) and (writeable is None or writeable is False):
        array = _share_plain(obj)
        if array is not None:
            return array
    if isinstance(obj, torch.Tensor):
        return execute(plan(obj, copy=copy, writeable=writeable, dtype=dtype), obj)
    if not isinstance(obj, (dict, list, tuple)):
        raise NotATensorError(
            f"to_numpy takes a tensor, or a dict, list or tuple with tensors inside, not {type(obj).__name__!r}"
        )
    return map_leaves(
        lambda leaf: to_numpy(leaf, copy=copy, writeable=writeable, dtype=dtype), obj, leaf_type=torch.Tensor
    )


def plan(
    tensor: torch.Tensor, *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
) -> ConversionPlan:
    """Return how `to_numpy` would convert `tensor` with the same arguments; nothing is executed and no value read.

    Raises the same errors as `to_numpy` for the same arguments.
    """
    info = inspect(tensor)
    if writeable:
        info = with_page_protection(info)
    return decide(info, copy=copy, writeable=writeable, dtype=dtype)


def _share_plain(tensor: Any) -> np.ndarray[Any, Any] | None:
    """Return the read-only view of an ordinary CPU tensor, or None if it is not one; `plan` would decide the same."""
    if (
        type(tensor) not in (torch.Tensor, torch.nn.Parameter)
        or tensor.dtype not in _NATIVE
        or not torch_private.is_plain_and_undisturbed(tensor)
        or not tensor.numel()
        or tensor.dim() > 32
    ):
        return None
    last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    if (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes():
        return None
    array: np.ndarray[Any, Any] = tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()
    array.flags.writeable = False
    return array


_ON_TENSOR: dict[Step, Callable[[torch.Tensor, ConversionPlan], torch.Tensor]] = {
    Step.TO_HOST: lambda t, _: t.cpu(),
    Step.RESOLVE_CONJ: lambda t, _: t.resolve_conj(),
    Step.RESOLVE_NEG: lambda t, _: t.resolve_neg(),
    Step.WIDEN: lambda t, _: t.to(getattr(torch, dtypes.KNOWN[dtypes.name_of(t.dtype)].widened or "")),
    Step.COPY: lambda t, _: t.clone(),
    Step.VIEW_BITS: lambda t, _: t.view(getattr(torch, dtypes.KNOWN[dtypes.name_of(t.dtype)].bits or "")),
}


def execute(plan: ConversionPlan, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the array that `plan` describes, made from `tensor`, of which nothing else is changed."""
    with torch_private.undisturbed():
        values = tensor.detach()
        if type(values) is not torch.Tensor:
            values = values.as_subclass(torch.Tensor)
        for step in plan.steps:
            if step in _ON_TENSOR:
                values = _ON_TENSOR[step](values, plan)
        array: np.ndarray[Any, Any] = values.numpy()
    if Step.CAST in plan.steps:
        array = _cast(array, plan.dtype)
    # The array that `numpy()` returned is frozen before any view of it is made: such a view cannot be thawed.
    if not plan.writeable:
        array.flags.writeable = False
    return array.view(plan.dtype) if Step.VIEW_BITS in plan.steps else array


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    # The plan has said that a cast may be lossy; NumPy's warnings for overflow and dropped parts would say it again.
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and dtype.kind != "c":
            array = array.real
        return array.astype(dtype)


def to_tensor(array: Any, *, copy: bool | None = None, device: torch.device | str | int | None = None) -> Any:
    """Return the tensor of a NumPy array, or the same container with tensors in the place of its arrays.

    Parameters
    ----------
    array : numpy.ndarray or NumPy scalar, or dict, list, tuple or namedtuple of arrays, nested
        ml_dtypes arrays keep their dtype, bits identical.
    copy : bool, optional
        None shares memory where that is possible and copies where not, True always copies, False never copies.
        Read-only arrays are copied, because torch has no read-only tensors.
    device : optional
        Where the tensor is to be; another device than the CPU always copies.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    UnsupportedArrayError
        If torch has no dtype for the array.
    NotATensorError
        If `array` is neither an array nor such a container.
    """
    if isinstance(array, (np.ndarray, np.generic)):
        return _tensor_of(np.asarray(array), copy, torch.device("cpu" if device is None else device))
    if not isinstance(array, (dict, list, tuple)):
        raise NotATensorError(
            f"to_tensor takes an array, or a dict, list or tuple with arrays inside, not {type(array).__name__!r}"
        )
    return map_leaves(lambda leaf: to_tensor(leaf, copy=copy, device=device), array, leaf_type=(np.ndarray, np.generic))


def _tensor_of(array: np.ndarray[Any, Any], copy: bool | None, device: torch.device) -> torch.Tensor:
    facts = dtypes.KNOWN.get(array.dtype.name)
    if facts is None or not hasattr(torch, facts.name):
        raise UnsupportedArrayError(f"torch has no dtype for {array.dtype} arrays; convert with .astype() first")
    obstacle = _why_not_shared(array, device)
    if copy is False and obstacle:
        raise CopyRequiredError(f"{obstacle} cannot share memory with a tensor; pass copy=None to allow a copy")
    if copy or (obstacle and device.type == "cpu"):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
    elif not array.flags.writeable:
        array = array.copy()
    bits = array.view(facts.bits) if facts.bits else array
    with torch_private.undisturbed():
        tensor = torch.from_numpy(bits)
        return (tensor if facts.numpy else tensor.view(getattr(torch, facts.name))).to(device)


def _why_not_shared(array: np.ndarray[Any, Any], device: torch.device) -> str:
    """Return what keeps torch from sharing the array's memory, as the subject of a sentence; empty if nothing does."""
    if device.type != "cpu":
        return f"an array that is to be on {device}"
    if not array.flags.writeable:
        return "a read-only array"
    if not array.dtype.isnative:
        return f"a {array.dtype.str} array of foreign byte order"
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        return "an array with negative or uneven strides"
    return ""
