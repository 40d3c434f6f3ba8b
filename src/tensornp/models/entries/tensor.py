"""A weight in memory: a tensor of a module, or of a dictionary of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.sharded import as_local, shard_of, with_scope
from tensornp.core.convert.to_numpy import plan, to_numpy
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor, own_attributes
from tensornp.core.lowlevel.modes import is_plain_without_modes, outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch, is_strided
from tensornp.core.memory.footprint import extents_of
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import plain_part
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import LOCAL, form_of
from tensornp.core.tensor.stand_ins import is_tensor_like, stood_for
from tensornp.core.tensor.steps import Step
from tensornp.errors import BadRequestError, NoDataError, TensornpError
from tensornp.models.entries.entry import IN_PARTS, META, WeightEntry, inner_text
from tensornp.models.entries.source import Source
from tensornp.models.names.quoted import part_of_storage
from tensornp.models.reading.take import taken_by

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

_LAZY = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
_MAX_SAID = 120
"""Characters of what torch has to say."""
_ON_META = "it is on the meta device"
_PENDING = "this rank's part is {}, and no value"


def kind_of(tensor: Any) -> str:
    """Return the kind of a tensor outside of modules."""
    return "parameter" if issubclass(type(tensor), torch.nn.Parameter) else "tensor"


def weight_of(name: str, kind: str, tensor: Any, code: str) -> WeightEntry:
    """Return a tensor as a weight."""
    facts = _Facts(tensor)
    try:
        facts.read()
    except TensornpError as error:
        facts.problem = str(error)
    except Exception as error:
        # Other weights are listed none the less.
        facts.problem = error_text(error)
    return WeightEntry(
        name, kind, facts.shape, facts.dtype, facts.nbytes, TensorSource(facts),
        code, facts.note, facts.problem, _several_numel=facts.several_numel, _elsewhere=facts.elsewhere,
        _is_pending=facts.is_pending,
    )  # fmt: skip


class _Facts:
    """The facts of a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.shape: tuple[int, ...] | None = None
        self.dtype = self.device = self.note = self.problem = ""
        self.nbytes, self.is_pending = 0, False
        self.several_numel: int | None = None
        self.elsewhere: int | None = None

    def read(self) -> None:
        """Read the facts; failing attributes of user classes stay unknown."""
        tensor = self.tensor
        # The attributes of an ordinary tensor are true, and cost a fiftieth of all facts.
        if is_strided(tensor):
            self.shape, self.dtype, self.device = (
                tuple(tensor.shape),
                name_of(tensor.dtype),
                "cpu" if tensor.is_cpu else str(tensor.device),
            )
            numel, size = tensor.numel(), tensor.element_size()
            self.nbytes = numel * size
            held = 0 if tensor.is_meta else tensor.untyped_storage().nbytes()
            if tensor.is_meta:
                self.problem = _ON_META
            elif self.nbytes and not held:
                self.problem = "its storage was freed"
            elif 0 in tensor.stride() and self.nbytes:
                self._count_stored("expanded")
            elif held > self.nbytes:
                self.note = part_of_storage(numel, held, size, "held")
            return
        part = plain_part(tensor)
        if part is not None and self._read_part(part):
            return
        if not is_tensor_like(tensor):
            self.problem = f"it is {an_instance(tensor)}, and no tensor"
            return
        self.is_pending = any(issubclass(type(tensor), cls) for cls in _LAZY)
        info = inspect(tensor)
        self.dtype, self.device, self.nbytes = name_of(info.dtype), str(info.device), info.nbytes
        if info.data_state == "uninitialized":
            self.problem = "it is lazy, and its shape is not known yet"
            return
        self.shape = info.shape
        self.several_numel = info.numel if info.kind.gives_several else None
        if info.data_state != "available":
            wrapped = f"its data are {info.data_state}" + (f" by {info._wrapper.rstrip(',')}" if info._wrapper else "")
            self.problem = _ON_META if info.data_state == META else wrapped
        if info.data_state == "remote":
            said = self._count_elsewhere(info.numel, info.numel - info._numel_elsewhere, info.itemsize)
            self.problem, self.note = IN_PARTS, f"{info.type_name}, {said}"
            if info.shard is not None and info.shard.pending:
                self.problem = _PENDING.format(info.shard.pending)
                self.note = info.type_name
        elif info.data_state == "wrapped" or info.kind.has_other_meaning:
            self._count_stored(_with_inner(info.type_name, tensor))
        else:
            said = info.type_name if info.type_name not in ("Tensor", "Parameter") else str(info.kind)
            is_placed = info.shard is not None and info.data_state != "available"
            self._count_stored(f"{said}, {info.detail}" if is_placed else said)

    def _read_part(self, part: torch.Tensor) -> bool:
        """Read the facts of a DTensor with an ordinary `part`, at a tenth of the cost.

        Return False of a part of a sum, and of a whole that has no elements, or none any more.
        """
        dtensor: Any = self.tensor
        is_here = form_of(dtensor).state == "available"
        if any([one.is_partial() for one in dtensor.placements]) or (is_here and not extents_of(part)):
            return False
        self.shape, self.dtype, self.device = tuple(dtensor.shape), name_of(dtensor.dtype), str(dtensor.device)
        if is_here:
            self._count_stored(type(dtensor).__name__)
        else:
            said = self._count_elsewhere(dtensor.numel(), part.numel(), dtensor.element_size())
            self.problem, self.note = IN_PARTS, f"{type(dtensor).__name__}, {said}"
        return True

    def _count_elsewhere(self, numel: int, here: int, itemsize: int) -> str:
        """Count the bytes of elements here and elsewhere, and return them as text."""
        self.nbytes, self.elsewhere = here * itemsize, numel - here
        return f"{here:,} of {numel:,} elements, {self.nbytes:,} of {numel * itemsize:,} bytes on this rank"

    def _count_stored(self, note: str) -> None:
        """Count the bytes of the stored elements once."""
        self.note = note
        extents = extents_of(self.tensor)
        if extents:
            self.nbytes = sum(high - low for low, high in (extent.bounds for extent in extents))


class TensorSource(Source):
    """A tensor in memory; `several` if it holds tensors that an index selects."""

    __slots__ = ("_shape", "held", "is_part", "location", "several")

    def __init__(self, facts: _Facts) -> None:
        self.held, self._shape, self.location = facts.tensor, facts.shape, facts.device
        self.several, self.is_part = facts.several_numel is not None, facts.elsewhere is not None

    @property
    def identity(self) -> object:
        """The tensor."""
        return id(self.held)

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes a gradient for it."""
        if is_of_torch(self.held) and is_plain_without_modes(self.held):
            # As most are: to step out of modes takes three times as long.
            return bool(self.held.requires_grad)
        return self._asked_for_grad()

    @outside_modes
    def _asked_for_grad(self) -> bool:
        try:
            is_told = is_of_torch(self.held) or plain_part(self.held) is not None
            return bool((self.held if is_told else inspect(self.held)).requires_grad)
        except Exception:
            # A failing class of the user hides no other weight.
            return False

    def plan(self, index: Any, *, copy: bool | None = None, shard: str | None = None) -> ConversionPlan:
        """Return a plan of the conversion; it waits for nothing."""
        if index is not Ellipsis and inspect(self.held)._is_pending:
            raise NoDataError("the tensor is still written by a collective; wait for it first")
        with _in_a_sentence():
            if shard == "full":
                return plan(self.held, copy=copy, shard=shard)
            made = plan(self._at(index, shard)[0], copy=copy, shard=shard)
            facts = shard_of(inspect(self.held)) if shard is not None and index is not Ellipsis else None
            return made if facts is None else with_scope(made, facts)

    def to_numpy(
        self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object, shard: str | None = None
    ) -> Any:
        """Return the values at `index`, which share memory if possible, as in `to_numpy`."""
        with _in_a_sentence():
            if shard == "full":
                taken_by(index, self._shape or ())
                array = to_numpy(self.held, copy=copy, writeable=writeable, dtype=dtype, shard=shard)
                return array if index is Ellipsis else np.asarray(array[index])
            part, turned = self._at(index, shard)
            array = to_numpy(part, copy=copy, writeable=writeable, dtype=dtype, shard=shard)
            return array[turned] if turned else array

    def values(self) -> Any:
        """Return the tensor."""
        return self.held

    def stats(self) -> TensorStats:
        """Return the statistics of all values, or of this rank's part."""
        from tensornp.core.values.stats.compute import scan

        # Rows and columns of a part have other numbers than those of the whole.
        return scan(self.held, in_depth=not self.is_part)

    @outside_modes
    def _at(self, index: Any, shard: str | None = None) -> tuple[Any, tuple[slice, ...]]:
        """Return a view of the elements at `index`, and the flips of its array.

        torch has no steps downwards: what is taken with one is taken upwards.
        """
        if index is Ellipsis:
            return self.held, ()
        part, shape = self.held, self._shape or ()
        if shard is not None:
            part = _held_here(part)
            shape = tuple(part.shape)
        if self.several:
            # The others are different in each.
            shape = shape[:1]
        taken = taken_by(index, shape)
        if self.several and taken.shape:
            raise BadRequestError("the tensor holds several, and one is taken by its number")
        ranges = iter(zip(taken.ranges, shape, strict=True))
        upwards: list[Any] = []
        turned: list[slice] = []
        for item in taken.items:
            if item is None:
                upwards.append(None)
                turned.append(slice(None))
                continue
            wanted, size = next(ranges)
            if isinstance(item, slice):
                low = wanted if wanted.step > 0 else wanted[::-1]
                upwards.append(slice(None) if len(low) == size else slice(low.start, low.stop, low.step))
                turned.append(slice(None, None, None if wanted.step > 0 else -1))
            else:
                upwards.append(wanted.start)
        while upwards and upwards[-1] == slice(None):
            # Sparse tensors take no slices.
            upwards.pop()
        if upwards:
            whole = part if is_tensor(part) else stood_for(part)
            part = whole.detach()[tuple(upwards)]
        return part, tuple(turned) if any(one.step for one in turned) else ()


def _held_here(tensor: Any) -> Any:
    """Return this rank's part of a sharded tensor."""
    info = as_local(inspect(tensor))
    while (info.kind is LOCAL or info.kind.step is Step.STAND_IN) and info.inner is not None:
        tensor, info = info.kind.inner(tensor), info.inner
    return tensor


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Convert errors of torch for this kind of tensor to one sentence."""
    try:
        yield
    except TensornpError:
        raise
    except Exception as error:
        # A class of its own may raise anything.
        why = error_text(error).partition("\n")[0].partition(". ")[0][:_MAX_SAID]
        raise BadRequestError(f"torch does not take this index; take all, and index the array ({why})") from None


def _with_inner(said: str, tensor: Any) -> str:
    """Return a class name with its tensors: ``Int8Tensor: qdata int8 (128, 128), …``."""
    inner = [(name, weight_of(name, "", value, "")) for name, value in own_attributes(tensor) if is_tensor(value)]
    return inner_text(said, [(name, one.dtype, one.shape) for name, one in inner])
