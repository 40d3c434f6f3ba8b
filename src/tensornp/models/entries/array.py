"""An array in memory that stands among weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.convert.to_tensor import to_tensor, why_copied
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.tensor.dtypes import asked_dtype, name_of
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats
from tensornp.core.values.stored import values_of_array
from tensornp.errors import BadRequestError, CopyRequiredError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import Source
from tensornp.models.reading.take import Array, taken_by


def array_weight(name: str, array: Any, code: str) -> WeightEntry:
    """Return an array as a weight."""
    source = ArraySource(np.ndarray.view(array, np.ndarray))
    own = source.held
    return WeightEntry(name, "array", own.shape, name_of(own.dtype), own.nbytes, source, code)


class ArraySource(Source):
    """An array, which is held as any variable would."""

    __slots__ = ("held", "location")
    held: Array

    def __init__(self, array: Array) -> None:
        self.held, self.location = array, "cpu"

    @property
    def identity(self) -> object:
        """Return a key of the elements, or of the source for an empty array."""
        array = self.held
        if not array.size:
            return id(self)
        return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str

    def plan(self, index: Any) -> str:
        """Say that nothing is converted."""
        taken_by(index, self.held.shape)
        return "it is an array already, and its memory is shared"

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Array:
        """Return the values at `index`: a view, read-only unless `writeable` is True, or a copy."""
        taken_by(index, self.held.shape)
        items = index if isinstance(index, tuple) else (index,)
        # With "..." a single element is a view too, and not a number.
        part = self.held[items if any(item is Ellipsis for item in items) else (*items, ...)]
        wanted = part.dtype if dtype is None else dtype if isinstance(dtype, np.dtype) else asked_dtype(dtype)
        if copy or wanted != part.dtype:
            if copy is False:
                raise CopyRequiredError(f"the array is {part.dtype}; another dtype takes a copy")
            try:
                with np.errstate(all="ignore"):
                    made = part.astype(wanted)
            except (TypeError, ValueError, OverflowError) as error:
                raise BadRequestError(f"the array is {part.dtype}, not {wanted}: {error_text(error)}") from None
            made.flags.writeable = writeable is not False
            return made
        view = part.view()
        view.flags.writeable = view.flags.writeable and writeable is True
        return view

    def values(self) -> Any:
        """Return a tensor over the same memory, or a reader if torch cannot share it."""
        array = self.held
        if not why_copied(array):
            return to_tensor(array)
        is_read_as_it_lies = array.dtype.isnative and array.dtype.name != "complex32"
        return array if is_read_as_it_lies else values_of_array(array)

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        return scan(self.held, in_depth=True)
