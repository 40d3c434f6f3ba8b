"""What a tensor, a storage or an array is, in a few words: its class, its shape and its dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import is_storage, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.values.reading.stored import StoredValues


class Description(NamedTuple):
    """What is said of `obj` beside its values."""

    class_name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.class_name} {self.shape} {self.dtype}"


def described(obj: Any) -> Description:
    """Return what `obj` is, without asking its class and without reading a value; raises as `inspect` does."""
    if issubclass(type(obj), StoredValues):
        return Description(obj.where, obj.shape, obj.dtype)
    name = type(obj).__name__
    if is_array(obj):
        plain_array = np.ndarray.view(obj, np.ndarray)
        return Description(name, plain_array.shape, name_of(plain_array.dtype))
    info = inspect(tensor_of(obj) if is_storage(obj) else obj)
    return Description(name, info.shape, name_of(info.dtype))
