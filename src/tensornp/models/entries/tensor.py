"""A weight in memory: a tensor of a module, or of a dictionary of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import plan, to_numpy
from tensornp.core.lowlevel.attributes import error_text, is_subclass, is_tensor, own_attributes
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.footprint import extents_of
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.info import inspect
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, NoDataError, TensornpError
from tensornp.models.entries.entry import WeightEntry, inner_text
from tensornp.models.entries.source import Called, Source
from tensornp.models.names.quoted import part_of_storage
from tensornp.models.reading.selection import taken_by

PLAIN = (torch.Tensor, torch.nn.Parameter)
_LAZY = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
_MAX_SAID = 120
"""Characters of what torch has to say."""
IN_PARTS = "this rank may hold only a part of it"
"""The problem of what is spread over ranks."""


def weight_of(
    name: str, kind: str, tensor: Any, code: str, requires_grad: bool | None = None, *, by_elements: bool = False
) -> WeightEntry:
    """Return a tensor as a weight; `requires_grad` is told of one that only sees the memory.

    With `by_elements`, tensors over the same elements are one.
    """
    source = TensorSource(tensor, requires_grad, by_elements=by_elements)
    facts = _Facts(tensor)
    try:
        facts.read(source)
    except TensornpError as error:
        facts.problem = str(error)
    except Exception as error:
        # Other weights are listed none the less.
        facts.problem = error_text(error)
    return WeightEntry(name, kind, source.shape, source.dtype, facts.nbytes, source, code, facts.note, facts.problem)


class _Facts:
    """What is said of a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.nbytes, self.note, self.problem = tensor, 0, "", ""

    def read(self, source: TensorSource) -> None:
        """Read the facts, and tell the source those that it needs."""
        tensor = self.tensor
        # Of an ordinary one the attributes are true, and cost a fiftieth of all facts.
        if type(tensor) in PLAIN and tensor.layout is torch.strided and not tensor.is_nested:
            source.shape, source.dtype = tuple(tensor.shape), name_of(tensor.dtype)
            source.device = str(tensor.device)
            numel, size = tensor.numel(), tensor.element_size()
            self.nbytes = numel * size
            if not tensor.is_meta and self.nbytes and not tensor.untyped_storage().nbytes():
                self.problem = "its storage was freed"
            elif tensor.is_meta:
                self.problem = "it is on the meta device, and has no values"
            elif 0 in tensor.stride() and self.nbytes:
                self._count_stored("expanded")
            elif (held := tensor.untyped_storage().nbytes()) > self.nbytes:
                self.note = part_of_storage(numel, held, size, "held")
            return
        info = inspect(tensor)
        source.dtype, source.device, self.nbytes = name_of(info.dtype), str(info.device), info.nbytes
        if info.data_state == "uninitialized":
            self.problem = "it is lazy, and its shape is not known yet"
            return
        source.shape = info.shape
        if info.kind.gives_several:
            source.several_numel = info.numel
        if info.data_state != "available":
            self.problem = f"its data are {info.data_state}"
        if info.data_state == "remote":
            elsewhere, here = info.numel_elsewhere, info.numel - info.numel_elsewhere
            source.elsewhere, self.problem = (elsewhere, elsewhere * info.itemsize), IN_PARTS
            self.nbytes = here * info.itemsize
            self.note = f"{info.type_name}, {here:,} of {info.numel:,} elements on this rank"
        elif info.data_state == "wrapped" or info.kind.has_other_meaning:
            self._count_stored(_with_inner(info.type_name, tensor))
        else:
            self._count_stored(info.type_name if info.type_name not in ("Tensor", "Parameter") else str(info.kind))

    def _count_stored(self, note: str) -> None:
        """Count the bytes of the elements that are stored, each once."""
        self.note = note
        extents = extents_of(self.tensor)
        if extents:
            self.nbytes = sum(high - low for low, high in (extent.bounds for extent in extents))


class TensorSource(Source):
    """A tensor, which is held as any variable would.

    `several_numel` counts the elements of a nested one, and `elsewhere` those that other ranks have, and their bytes.
    """

    __slots__ = ("_requires_grad", "by_elements", "device", "dtype", "elsewhere", "several_numel", "shape", "tensor")

    def __init__(self, tensor: Any, requires_grad: bool | None = None, *, by_elements: bool = False) -> None:
        self.tensor, self._requires_grad, self.by_elements = tensor, requires_grad, by_elements
        self.shape: tuple[int, ...] | None = None
        self.dtype = self.device = ""
        self.several_numel: int | None = None
        self.elsewhere: tuple[int, int] | None = None

    @property
    def location(self) -> str:
        """The device."""
        return self.device

    @property
    def held(self) -> Any:
        """The tensor."""
        return self.tensor

    @property
    def identity(self) -> object:
        """The tensor, or its elements."""
        tensor = self.tensor
        is_plain = self.by_elements and type(tensor) in PLAIN and tensor.layout is torch.strided
        if not is_plain or not tensor.numel() or tensor.is_meta or not tensor.untyped_storage().nbytes():
            return id(tensor)
        return self.device, tensor.data_ptr(), self.shape, tensor.stride(), self.dtype

    @property
    def is_pending(self) -> bool:
        """Whether it is lazy."""
        return any(is_subclass(type(self.tensor), cls) for cls in _LAZY)

    @property
    def is_part(self) -> bool:
        """Whether it is spread over ranks."""
        return self.elsewhere is not None

    @property
    def numel(self) -> int | None:
        """How many elements a nested one has, whose shape does not tell."""
        return self.several_numel

    @property
    def numel_elsewhere(self) -> int:
        """How many of the elements this rank does not hold, where it is sharded."""
        return self.elsewhere[0] if self.elsewhere else 0

    @property
    def nbytes_elsewhere(self) -> int:
        """The bytes of these."""
        return self.elsewhere[1] if self.elsewhere else 0

    @property
    @unnoticed
    def requires_grad(self) -> bool:
        """Whether backward adds up a gradient for it."""
        if self._requires_grad is not None:
            return self._requires_grad
        try:
            return bool((self.tensor if type(self.tensor) in PLAIN else inspect(self.tensor)).requires_grad)
        except Exception:
            # What a class of the user's does not tell hides no other weight.
            return False

    def plan(self, called: Called, index: Any, *, copy: bool | None = None) -> ConversionPlan:
        """Return how the values at `index` would become an array; it waits for nothing, and raises as `to_numpy`."""
        if index is not Ellipsis and inspect(self.tensor).is_pending:
            raise NoDataError(f"{called.shown} is still written by a collective; wait for it first")
        with _in_a_sentence(called):
            return plan(self._at(called, index)[0], copy=copy)

    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index`; memory is shared where that is possible, as by `to_numpy`."""
        with _in_a_sentence(called):
            part, turned = self._at(called, index)
            array = to_numpy(part, copy=copy, writeable=writeable, dtype=dtype)
            return array[turned] if turned else array

    def values(self, called: Called) -> Any:
        """Return the tensor."""
        return self.tensor

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of all values; of what is spread over ranks, of this rank's part, as `scope` says."""
        # Rows and columns of a part have other numbers than those of the whole.
        return scan(self.tensor, in_depth=not self.is_part)

    @unnoticed
    def _at(self, called: Called, index: Any) -> tuple[Any, tuple[slice, ...]]:
        """Return a view of the elements at `index`, without a trace in autograd, and how its array is turned then.

        torch has no steps downwards: what is taken with one is taken upwards.
        """
        if index is Ellipsis:
            return self.tensor, ()
        shape = self.shape or ()
        if self.several_numel is not None:
            # The others are different in each.
            shape = shape[:1]
        taken = taken_by(index, shape)
        if self.several_numel is not None and taken.shape:
            raise BadRequestError(f"{called.shown} holds several tensors, and one is taken by its number")
        ranges = iter(zip(taken.ranges, shape, strict=True))
        upwards: list[Any] = []
        turned: list[slice] = []
        for item in taken.final:
            if item is None:
                upwards.append(None)
                turned.append(slice(None))
                continue
            (first, num, step), size = next(ranges)
            if isinstance(item, slice):
                is_whole = num == size
                upwards.append(slice(None) if is_whole else slice(first, first + num * step, step) if num else slice(0))
                turned.append(item)
            else:
                upwards.append(first)
        while upwards and upwards[-1] == slice(None):
            # Sparse tensors take no slices.
            upwards.pop()
        part = self.tensor.detach()[tuple(upwards)] if upwards else self.tensor
        return part, tuple(turned) if any(one.step for one in turned) else ()


@contextmanager
def _in_a_sentence(called: Called) -> Iterator[None]:
    """Have what torch does not do with a tensor of this kind end in one sentence."""
    try:
        yield
    except TensornpError:
        raise
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        why = error_text(error).partition("\n")[0].partition(". ")[0][:_MAX_SAID]
        raise BadRequestError(
            f"torch does not take this of {called.shown}; take all of it, and that of the array ({why})"
        ) from None


def _with_inner(said: str, tensor: Any) -> str:
    """Return the name of a class with the tensors that it consists of: ``Int8Tensor: qdata int8 (128, 128), …``."""
    inner = [(name, weight_of(name, "", value, "")) for name, value in own_attributes(tensor) if is_tensor(value)]
    return inner_text(said, [(name, one.dtype, one.shape) for name, one in inner])
