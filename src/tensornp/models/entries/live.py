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
from tensornp.models.entries.entry import Extent, WeightEntry, inner_text
from tensornp.models.names.quoted import part_of_storage, shown_name
from tensornp.models.reading.selection import select

PLAIN = (torch.Tensor, torch.nn.Parameter)
_LAZY = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
_MAX_SAID = 120
"""Characters of what torch has to say."""
IN_PARTS = "this rank may hold only a part of it"
"""The problem of what is spread over ranks."""


class LiveEntry(WeightEntry):
    """A tensor, which is held as any variable would; `requires_grad` is told of one that only sees the memory."""

    __slots__ = ("_device", "_elsewhere", "_requires_grad", "_several_numel", "tensor")
    extents: tuple[Extent, ...] = ()

    def __init__(self, name: str, kind: str, tensor: Any, code: str, requires_grad: bool | None = None) -> None:
        self.tensor, self._requires_grad = tensor, requires_grad
        self._several_numel: int | None = None
        self._elsewhere = 0, 0
        super().__init__(name, kind, None, "", 0, code)
        try:
            self._read_facts()
        except TensornpError as error:
            self.problem = str(error)
        except Exception as error:
            # Other weights are listed none the less.
            self.problem = error_text(error)

    def _read_facts(self) -> None:
        tensor = self.tensor
        self._device = ""
        # Of an ordinary one the attributes are true, and cost a fiftieth of all facts.
        if type(tensor) in PLAIN and tensor.layout is torch.strided and not tensor.is_nested:
            self.shape, self.dtype, self._device = tuple(tensor.shape), name_of(tensor.dtype), str(tensor.device)
            self.nbytes = tensor.numel() * tensor.element_size()
            if not tensor.is_meta and self.nbytes and not tensor.untyped_storage().nbytes():
                self.problem = "its storage was freed"
            elif tensor.is_meta:
                self.problem = "it is on the meta device, and has no values"
            elif 0 in tensor.stride() and self.nbytes:
                self._count_stored("expanded")
            elif (held := tensor.untyped_storage().nbytes()) > self.nbytes:
                self.note = part_of_storage(self.numel, held, tensor.element_size(), "held")
            return
        info = inspect(tensor)
        self.dtype, self._device, self.nbytes = name_of(info.dtype), str(info.device), info.nbytes
        if info.data_state == "uninitialized":
            self.problem = "it is lazy, and its shape is not known yet"
            return
        self.shape = info.shape
        if info.kind.gives_several:
            self._several_numel = info.numel
        if info.data_state != "available":
            self.problem = f"its data are {info.data_state}"
        if info.data_state == "remote":
            elsewhere, here = info.numel_elsewhere, info.numel - info.numel_elsewhere
            self._elsewhere, self.problem = (elsewhere, elsewhere * info.itemsize), IN_PARTS
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

    @property
    def is_pending(self) -> bool:
        """Whether it is lazy."""
        return any(is_subclass(type(self.tensor), cls) for cls in _LAZY)

    @property
    def identity(self) -> object:
        """The tensor."""
        return id(self.tensor)

    @property
    def location(self) -> str:
        """The device."""
        return self._device

    @property
    def numel(self) -> int:
        """How many elements it has; those of a nested one, whose shape does not tell, are counted."""
        return super().numel if self._several_numel is None else self._several_numel

    @property
    def numel_elsewhere(self) -> int:
        """How many of its elements this rank does not hold, where it is sharded."""
        return self._elsewhere[0]

    @property
    def nbytes_elsewhere(self) -> int:
        """The bytes of these."""
        return self._elsewhere[1]

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

    def plan(self, index: Any = ..., *, copy: bool | None = None) -> ConversionPlan:
        """Return how the values at `index` would become an array; it waits for nothing, and raises as `to_numpy`."""
        self.check_readable()
        if index is not Ellipsis and inspect(self.tensor).is_pending:
            raise NoDataError(f"{shown_name(self.name)} is still written by a collective; wait for it first")
        with self._in_a_sentence():
            return plan(self._at(index)[0], copy=copy)

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Any:
        """Return the values at `index`; memory is shared where that is possible, as by `to_numpy`.

        A nested tensor gives a list.
        """
        self.check_readable()
        with self._in_a_sentence():
            part, turned = self._at(index)
            array = to_numpy(part, copy=copy, writeable=writeable, dtype=dtype)
            return array[turned] if turned else array

    def check_readable(self) -> None:
        """Raise NoDataError if there are no values, with the expressions of those that there are instead."""
        if self.problem == IN_PARTS:
            tensor = self.code or "tensor"
            raise NoDataError(
                f"{shown_name(self.name)} has no values to read: {IN_PARTS}; take {tensor}.to_local(), or "
                f"{tensor}.full_tensor() on all ranks together"
            )
        super().check_readable()

    def values(self) -> Any:
        """Return the tensor."""
        self.check_readable()
        return self.tensor

    def stats(self) -> TensorStats:
        """Return the statistics of all values; of what is spread over ranks, of this rank's part, as `scope` says."""
        if self.problem == IN_PARTS:
            # Rows and columns of a part have other numbers than those of the whole.
            return scan(self.tensor)
        return scan(self.values(), in_depth=True)

    @unnoticed
    def _at(self, index: Any) -> tuple[Any, tuple[slice, ...]]:
        """Return a view of the elements at `index`, without a trace in autograd, and how its array is turned then.

        torch has no steps downwards: what is taken with one is taken upwards.
        """
        if index is Ellipsis:
            return self.tensor, ()
        shape = self.shape or ()
        if self._several_numel is not None:
            # The others are different in each.
            shape = shape[:1]
        selection = select(index, shape, 1)
        if self._several_numel is not None and selection.result_shape:
            raise BadRequestError(f"{shown_name(self.name)} holds several tensors, and one is taken by its number")
        ranges = iter(zip(selection.ranges, shape, strict=True))
        upwards: list[Any] = []
        turned: list[slice] = []
        for item in selection.final:
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
    def _in_a_sentence(self) -> Iterator[None]:
        """Have what torch does not do with a tensor of this kind end in one sentence."""
        try:
            yield
        except TensornpError:
            raise
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            why = error_text(error).partition("\n")[0].partition(". ")[0][:_MAX_SAID]
            raise BadRequestError(
                f"torch does not take this of {shown_name(self.name)}; take all of it, and that of the array ({why})"
            ) from None


def _with_inner(said: str, tensor: Any) -> str:
    """Return the name of a class with the tensors that it consists of: ``Int8Tensor: qdata int8 (128, 128), …``."""
    inner = [(name, LiveEntry(name, "", value, "")) for name, value in own_attributes(tensor) if is_tensor(value)]
    return inner_text(said, [(name, one.dtype, one.shape) for name, one in inner])
