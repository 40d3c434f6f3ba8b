"""A weight in memory: a tensor of a module, or of a dictionary of them."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.convert.to_numpy import plan, to_numpy
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.footprint import extents_of
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.info import inspect
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.errors import TensornpError
from tensornp.trees.entry import Array, Extent, WeightEntry
from tensornp.trees.selection import select

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class LiveEntry(WeightEntry):
    """A tensor, which is held as any variable would."""

    __slots__ = ("_device", "tensor")
    extents: tuple[Extent, ...] = ()

    def __init__(self, name: str, kind: str, tensor: Any, code: str) -> None:
        self.tensor = tensor
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
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_nested:
            self.shape, self.dtype, self._device = tuple(tensor.shape), name_of(tensor.dtype), str(tensor.device)
            self.nbytes = tensor.numel() * tensor.element_size()
            if tensor.is_meta:
                self.problem = "it is on the meta device, and has no values"
            elif 0 in tensor.stride() and self.nbytes:
                self._count_stored("expanded")
            elif tensor.untyped_storage().nbytes() > self.nbytes:
                self.note = "view of a larger storage"
            return
        info = inspect(tensor)
        self.dtype, self._device, self.nbytes = name_of(info.dtype), str(info.device), info.nbytes
        if info.data_state == "uninitialized":
            self.problem = "it is lazy, and its shape is not known yet"
            return
        self.shape = info.shape
        if info.data_state != "available":
            self.problem = f"its data are {info.data_state}"
        self._count_stored(info.type_name if info.type_name not in ("Tensor", "Parameter") else str(info.kind))

    def _count_stored(self, note: str) -> None:
        """Count the bytes of the elements that are stored, each once."""
        self.note = note
        extents = extents_of(self.tensor)
        if extents:
            self.nbytes = sum(high - low for low, high in (extent.bounds for extent in extents))

    @property
    def location(self) -> str:
        """The device."""
        return self._device

    @property
    def requires_grad(self) -> bool:
        """Whether backward adds up a gradient for it."""
        return bool(self.tensor.requires_grad)

    def plan(self, index: Any = ...) -> ConversionPlan:
        """Return how the values at `index` would become an array."""
        return plan(self._at(index))

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`; memory is shared where that is possible, as by `to_numpy`."""
        self.check_readable()
        array: Array = to_numpy(self._at(index), copy=copy, writeable=writeable, dtype=dtype)
        return array

    def values(self) -> Any:
        """Return the tensor."""
        self.check_readable()
        return self.tensor

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        return stats(self.values())

    @unnoticed
    def _at(self, index: Any) -> Any:
        """Return a view of the elements at `index`, without a trace in autograd."""
        if index is Ellipsis:
            return self.tensor
        select(index, self.shape or (), 1)
        return self.tensor.detach()[index]
