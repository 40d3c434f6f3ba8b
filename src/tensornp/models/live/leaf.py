"""The weight that one object of a container is: a tensor, an array or a storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.tensor.containers import MAX_DEPTH, is_container, is_seen
from tensornp.core.tensor.form import code_of_tensor, is_storage, tensor_of
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.array import array_weight
from tensornp.models.entries.entry import WeightEntry, noted, nothing
from tensornp.models.entries.tensor import kind_of, weight_of

MAX_LEAVES = 5_000_000
"""Values of one container that are looked at: some seconds."""
_OF_TORCH = frozenset(map(id, (torch.dtype, torch.device, torch.layout, torch.memory_format)))
"""By identity: a metaclass of the user's may compute hashes and equality."""
_MASKED = "it is a masked array, whose hidden elements are no weights; put its .filled() there"


def weights_of_leaf(what: Any, name: str, code: str) -> Iterator[WeightEntry]:
    """Yield the weight for an object in a container, if it is one."""
    if is_tensor_like(what):
        yield weight_of(name, kind_of(what), what, code)
    elif issubclass(type(what), np.ma.MaskedArray):
        yield nothing(name, "array", code, _MASKED, "cpu")
    elif is_array(what):
        yield array_weight(name, what, code)
    elif is_storage(what):
        try:
            entry = weight_of(name, "tensor", tensor_of(what), code_of_tensor(what, code))
        except Exception:
            # It is freed, or elsewhere.
            return
        yield noted(entry, type(what).__name__)


def plain_of(what: Any) -> Any:
    """Return a NumPy number as a plain value, torch's dtypes and devices as text."""
    cls = type(what)
    if id(cls) in _OF_TORCH:
        return str(what)
    return np.generic.item(what) if issubclass(cls, np.generic) and cls.__module__ == "numpy" else what


def is_walked(leaf: Any, depth: int) -> bool:
    """Return whether a container hides nothing, as it is empty or contains itself."""
    return depth < MAX_DEPTH and is_container(leaf) and is_seen(leaf)
