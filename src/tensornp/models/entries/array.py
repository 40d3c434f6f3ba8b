"""An array in memory that stands among weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.convert.from_numpy import why_copied
from tensornp.core.exchange.to_tensor import to_tensor
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.tensor.dtypes import name_of, resolve
from tensornp.core.values.reading.stored import values_of_array
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import BadRequestError, CopyRequiredError
from tensornp.models.entries.entry import Array, Extent, WeightEntry
from tensornp.models.names.quoted import shown_name
from tensornp.models.reading.selection import select

_MAX_SAID = 120
"""Characters of what NumPy has to say."""


class ArrayEntry(WeightEntry):
    """An array, which is held as any variable would."""

    __slots__ = ("array",)
    requires_grad = None
    location = "cpu"
    extents: tuple[Extent, ...] = ()

    def __init__(self, name: str, array: Any, code: str) -> None:
        self.array = np.ndarray.view(array, np.ndarray)
        super().__init__(name, "array", self.array.shape, name_of(self.array.dtype), self.array.nbytes, code)

    @property
    def identity(self) -> object:
        """The elements of the array; of one without any, itself, since such may share an address with others."""
        array = self.array
        if not array.size:
            return id(self)
        return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str

    def plan(self, index: Any = ...) -> str:
        """Say that nothing is converted."""
        select(index, self.array.shape, 1)
        return "it is an array already, and its memory is shared"

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`: a view, read-only unless `writeable` is True, or a copy."""
        select(index, self.array.shape, 1)
        items = index if isinstance(index, tuple) else (index,)
        # With "..." a single element is a view too, and not a number.
        part = self.array[items if any(item is Ellipsis for item in items) else (*items, ...)]
        wanted = part.dtype if dtype is None else _dtype_of(dtype)
        if copy or wanted != part.dtype:
            if copy is False:
                raise CopyRequiredError(f"{shown_name(self.name)} is {part.dtype}; another dtype takes a copy")
            made = self._cast(part, wanted)
            made.flags.writeable = writeable is not False
            return made
        view = part.view()
        view.flags.writeable = view.flags.writeable and writeable is True
        return view

    @ignoring_float_errors
    def _cast(self, part: Array, wanted: np.dtype[Any]) -> Array:
        try:
            return part.astype(wanted)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRequestError(
                f"{shown_name(self.name)} is {part.dtype}, and no {wanted}: {error_text(error)[:_MAX_SAID]}"
            ) from None

    def values(self) -> Any:
        """Return a tensor of the same memory; where torch cannot share it, what is read of the array some at a time."""
        array = self.array
        if not why_copied(array):
            return to_tensor(array)
        is_read_as_it_lies = array.dtype.isnative and array.dtype.name != "complex32"
        return array if is_read_as_it_lies else values_of_array(array)

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        return scan(self.array, in_depth=True)


def _dtype_of(dtype: object) -> np.dtype[Any]:
    try:
        return dtype if isinstance(dtype, np.dtype) else resolve(name_of(dtype))
    except TypeError:
        raise BadRequestError(f"dtype={dtype!r} is not a dtype; pass a NumPy dtype or its name") from None
