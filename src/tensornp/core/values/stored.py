"""Values in files that are read some at a time, as a tensor is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import Any, NamedTuple, final

import numpy as np
import torch

from tensornp.core.convert.to_tensor import facts_of, tensor_over
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import BITS, Places
from tensornp.core.tensor.info import inspect
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
Box = tuple[slice, ...]


@final
@dataclass(frozen=True)
class StoredValues:
    """The values of a tensor that lies in a file, read some at a time.

    `read_box` returns a box as a new tensor, and `read_flat` some elements from one on, if they lie in order. `codes`
    are the stored values of a weight whose `scheme` gives them their meaning.
    """

    shape: tuple[int, ...]
    dtype: str
    read_box: Callable[[Box], torch.Tensor]
    read_flat: Callable[[int, int], torch.Tensor] | None = None
    where: str = "tensor of a file"
    quantized: str = ""
    codes: StoredValues | None = None
    scheme: object = None

    @cached_property
    def info(self) -> TensorInfo:
        # One element stands for all, so that nothing is allocated.
        return inspect(torch.empty((), dtype=getattr(torch, self.dtype)).expand(self.shape))

    def few(self, places: Places) -> torch.Tensor:
        """Return the elements at `places`, which has a list of indices for each dimension."""
        # Runs of consecutive indices, by their places in the list.
        runs = [[[*run] for _, run in groupby(enumerate(axis), key=lambda pair: pair[1] - pair[0])] for axis in places]
        made = torch.empty([len(axis) for axis in places], dtype=getattr(torch, self.dtype))
        # Raw bytes are put together, since torch cannot assign all dtypes.
        bits = made.view(BITS[made.element_size()])
        for some in product(*runs):
            box = tuple(slice(run[0][1], run[-1][1] + 1) for run in some)
            at = tuple(slice(run[0][0], run[-1][0] + 1) for run in some)
            bits[at] = self.read_box(box).view(bits.dtype)
        return made


@modes.outside_modes
def values_of_array(array: Array) -> torch.Tensor:
    """Return a tensor over an array, to read it; raise UnsupportedArrayError for other dtypes."""
    if issubclass(type(array), np.ma.MaskedArray):
        raise BadRequestError("a masked array hides elements; pass a.compressed(), or a.data for all")
    plain = np.ndarray.view(array, np.ndarray)
    return tensor_over(plain, facts_of(plain).name)


class Description(NamedTuple):
    class_name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.class_name} {self.shape} {self.dtype}"


def described(obj: Any) -> Description:
    if issubclass(type(obj), StoredValues):
        return Description(obj.where, obj.shape, obj.dtype)
    name = type(obj).__name__
    if is_array(obj):
        plain_array = np.ndarray.view(obj, np.ndarray)
        return Description(name, plain_array.shape, name_of(plain_array.dtype))
    info = inspect(obj)
    return Description(name, info.shape, name_of(info.dtype))
