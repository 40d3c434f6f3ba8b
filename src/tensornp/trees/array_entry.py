"""An array in memory that stands among weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.exchange.to_tensor import to_tensor
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.errors import CopyRequiredError
from tensornp.trees.entry import Array, Extent, WeightEntry
from tensornp.trees.names import shown_name
from tensornp.trees.selection import select


class ArrayEntry(WeightEntry):
    """An array, which is held as any variable would."""

    __slots__ = ("array",)
    requires_grad = None
    location = "cpu"
    extents: tuple[Extent, ...] = ()

    def __init__(self, name: str, array: Any, code: str) -> None:
        self.array = np.ndarray.view(array, np.ndarray)
        super().__init__(name, "array", self.array.shape, name_of(self.array.dtype), self.array.nbytes, code)

    def plan(self, index: Any = ...) -> str:
        """Say that nothing is converted."""
        select(index, self.array.shape, 1)
        return "it is an array already, and its memory is shared"

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`: a view, read-only unless `writeable` is True, or a copy."""
        select(index, self.array.shape, 1)
        part = np.asarray(self.array[index])
        wanted = part.dtype if dtype is None else np.dtype(dtype)  # type: ignore[call-overload]
        if copy or wanted != part.dtype:
            if copy is False:
                raise CopyRequiredError(f"{shown_name(self.name)} is {part.dtype}; another dtype takes a copy")
            made: Array = part.astype(wanted)
            made.flags.writeable = writeable is not False
            return made
        view = part.view()
        view.flags.writeable = view.flags.writeable and writeable is True
        return view

    def values(self) -> Any:
        """Return a tensor of the same memory, where torch has the dtype."""
        return to_tensor(self.array)

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        return stats(self.array)
