"""Weights in memory: tensors and arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import as_local, plan, shard_of, to_numpy, with_scope
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_strided
from tensornp.core.memory.footprint import footprint_of
from tensornp.core.tensor.dtypes import asked_dtype, name_of
from tensornp.core.tensor.form import Bare, Step
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import LOCAL
from tensornp.core.tensor.stand_ins import is_tensor_like, stood_for
from tensornp.core.values.stored import values_of_array
from tensornp.errors import BadRequestError, CopyRequiredError, NoDataError, TensornpError
from tensornp.models.entries.entry import IN_PARTS, META, Source, WeightEntry
from tensornp.models.entries.take import Array, Shape, taken_by
from tensornp.models.names.quoted import part_of_storage

_LAZY = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
_MAX_SAID = 120
_ON_META = "it is on the meta device"


def array_weight(name: str, array: Any, code: str) -> WeightEntry:
    own = np.ndarray.view(array, np.ndarray)
    return WeightEntry(name, "array", own.shape, name_of(own.dtype), own.nbytes, ArraySource(own), code)


class ArraySource(Source):
    """An array, which is held as any variable would."""

    __slots__ = ("held", "location")
    held: Array

    def __init__(self, array: Array) -> None:
        self.held, self.location = array, "cpu"

    @property
    def identity(self) -> object:
        array = self.held
        if not array.size:
            return id(self)
        return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str

    def plan(self, index: Any) -> str:
        taken_by(index, self.held.shape)
        return "it is an array already, and its memory is shared"

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Array:
        """Return the values at `index`: a view, read-only unless `writeable` is True, or a copy."""
        taken_by(index, self.held.shape)
        items = index if isinstance(index, tuple) else (index,)
        # With "..." a single element is a view too, and not a number.
        part = self.held[items if any(item is Ellipsis for item in items) else (*items, ...)]
        wanted = part.dtype if dtype is None else dtype if isinstance(dtype, np.dtype) else asked_dtype(dtype)
        if copy is False and wanted != part.dtype:
            raise CopyRequiredError(f"the array is {part.dtype}; another dtype takes a copy")
        try:
            with np.errstate(all="ignore"):
                made = np.asarray(part, wanted, copy=copy).view()
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRequestError(f"the array is {part.dtype}, not {wanted}: {error_text(error)}") from None
        is_new = copy is True or wanted != part.dtype
        made.flags.writeable = writeable is not False if is_new else made.flags.writeable and writeable is True
        return made

    def values(self) -> Any:
        """Return a tensor to read, over the same memory if torch has such strides."""
        return values_of_array(self.held)


def weight_of(name: str, kind: str, tensor: Any, code: str) -> WeightEntry:
    """Return a tensor as a weight; failing attributes of user classes stay unknown."""
    facts: dict[str, Any] = {"shape": None, "dtype": "", "nbytes": 0}
    try:
        (_read_plain if is_strided(tensor) else _read)(tensor, facts)
    except TensornpError as error:
        facts["problem"] = str(error)
    except Exception as error:
        # Other weights are listed none the less.
        facts["problem"] = error_text(error)
    source = TensorSource(
        tensor, facts["shape"], facts.pop("device", ""), "_several_numel" in facts, "_nbytes_elsewhere" in facts
    )
    return WeightEntry(name, kind, code=code, _source=source, **facts)


def _read_plain(tensor: Any, facts: dict[str, Any]) -> None:
    """Read the attributes of an ordinary tensor, which are true, and cost a fiftieth of all facts."""
    numel, size = tensor.numel(), tensor.element_size()
    nbytes, held = numel * size, 0 if tensor.is_meta else tensor.untyped_storage().nbytes()
    device = "cpu" if tensor.is_cpu else str(tensor.device)
    facts |= {"shape": tuple(tensor.shape), "dtype": name_of(tensor.dtype), "device": device, "nbytes": nbytes}
    if tensor.is_meta:
        facts["problem"] = _ON_META
    elif nbytes and not held:
        facts["problem"] = "its storage was freed"
    elif 0 in tensor.stride() and nbytes:
        facts |= _stored(tensor, nbytes, "expanded")
    elif held > nbytes:
        facts["note"] = part_of_storage(numel, held, size, "held")


def _read(tensor: Any, facts: dict[str, Any]) -> None:
    if not is_tensor_like(tensor):
        facts["problem"] = f"it is {an_instance(tensor)}, and no tensor"
        return
    facts["_is_pending"] = any(issubclass(type(tensor), cls) for cls in _LAZY)
    info = inspect(tensor)
    facts |= {"dtype": name_of(info.dtype), "device": str(info.device), "nbytes": info.nbytes}
    if info.data_state == "uninitialized":
        facts["problem"] = "it is lazy, and its shape is not known yet"
        return
    facts["shape"] = info.shape
    if info.kind.gives_several:
        facts["_several_numel"] = info.numel
    if info.data_state != "available":
        wrapped = f"its data are {info.data_state}" + (f" by {info._wrapper.rstrip(',')}" if info._wrapper else "")
        facts["problem"] = _ON_META if info.data_state == META else wrapped
    if info.data_state == "remote":
        here, itemsize = info.numel - info._numel_elsewhere, info.itemsize
        elsewhere = info._numel_elsewhere * itemsize
        facts |= {"nbytes": here * itemsize, "_nbytes_elsewhere": elsewhere, "problem": IN_PARTS}
        said = f"{here:,} of {info.numel:,} elements, {here * itemsize:,} of {info.numel * itemsize:,} bytes"
        facts["note"] = f"{info.type_name}, {said} on this rank"
        if info.shard is not None and info.shard.pending:
            facts |= {"problem": f"this rank's part is {info.shard.pending}, and no value", "note": info.type_name}
        return
    said = info.type_name if info.type_name not in ("Tensor", "Parameter") else str(info.kind)
    said += f", {info.detail}" if info.shard is not None and info.data_state != "available" else ""
    facts |= _stored(tensor, info.nbytes, said)


def _stored(tensor: Any, nbytes: int, note: str) -> dict[str, Any]:
    extents, _ = footprint_of(tensor)
    return {"note": note, "nbytes": sum(e.bounds[1] - e.bounds[0] for e in extents) if extents else nbytes}


class TensorSource(Source):
    """A tensor in memory; `several` if it holds tensors that an index selects."""

    __slots__ = ("_shape", "held", "is_part", "location", "several")

    def __init__(self, held: Any, shape: Shape | None, location: str, several: bool, is_part: bool) -> None:
        self.held, self._shape, self.location = held, shape, location
        self.several, self.is_part = several, is_part

    @property
    def identity(self) -> object:
        return id(self.held)

    @property
    @outside_modes
    def requires_grad(self) -> bool:
        try:
            return bool((Bare if is_tensor(self.held) else inspect)(self.held).requires_grad)
        except Exception:
            # A failing class of the user hides no other weight.
            return False

    def plan(self, index: Any, *, copy: bool | None = None, shard: str | None = None) -> ConversionPlan:
        """Return a plan of the conversion; it waits for nothing."""
        if index is not Ellipsis and inspect(self.held)._is_pending:
            raise NoDataError("the tensor is still written by a collective; wait for it first")
        with _in_a_sentence():
            made = plan(self._at(index, shard)[0], copy=copy, shard=shard)
            facts = shard_of(inspect(self.held)) if shard == "local" and index is not Ellipsis else None
            return made if facts is None else with_scope(made, facts)

    def to_numpy(
        self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object, shard: str | None = None
    ) -> Any:
        """Return the values at `index`, which share memory if possible, as in `to_numpy`."""
        with _in_a_sentence():
            part, left = self._at(index, shard)
            array = to_numpy(part, copy=copy, writeable=writeable, dtype=dtype, shard=shard)
            return array if left is Ellipsis else np.asarray(array[left])

    def values(self) -> Any:
        return self.held

    @outside_modes
    def _at(self, index: Any, shard: str | None) -> tuple[Any, Any]:
        """Return the tensor, or a view of some elements, and the index that is left for its array."""
        part, shape = self.held, self._shape or ()
        if index is Ellipsis:
            return part, ...
        if shard == "local":
            info = as_local(inspect(part))
            while (info.kind is LOCAL or info.kind.step is Step.STAND_IN) and info.inner is not None:
                part, info = info.kind.inner(part), info.inner
            shape = tuple(part.shape)
        # Several tensors have other sizes each.
        taken = taken_by(index, shape[:1] if self.several else shape)
        if self.several and taken.shape:
            raise BadRequestError("the tensor holds several, and one is taken by its number")
        if shard == "full" or any(one.step < 0 for one in taken.ranges):
            # The whole is gathered, and torch has no negative steps.
            return part, index
        items = [one if one is None or isinstance(one, slice) else operator.index(one) for one in taken.items]
        while items and items[-1] == slice(None):
            # Sparse tensors take no slices.
            items.pop()
        whole = part if is_tensor(part) else stood_for(part)
        return (whole.detach()[tuple(items)] if items else part), ...


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    try:
        yield
    except TensornpError:
        raise
    except Exception as error:
        # A class of its own may raise anything.
        why = error_text(error).partition("\n")[0].partition(". ")[0][:_MAX_SAID]
        raise BadRequestError(f"torch does not take this index; take all, and index the array ({why})") from None
