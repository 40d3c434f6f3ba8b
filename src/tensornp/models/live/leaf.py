"""The weight that one object of a container is: a tensor, an array or a storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensornp.core.lowlevel.attributes import class_name, is_array, is_subclass
from tensornp.core.tensor.form import code_of_tensor, is_storage, tensor_of
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.array import array_weight
from tensornp.models.entries.entry import WeightEntry, noted, nothing
from tensornp.models.entries.tensor import kind_of, weight_of

MAX_LEAVES = 5_000_000
"""Values of one container that are looked at: some seconds."""
_MASKED = "it is a masked array, whose hidden elements are no weights; put its .filled() there"


def weights_of_leaf(what: Any, name: str, code: str) -> Iterator[WeightEntry]:
    """Yield the weight that an object in a container is, by its name; nothing of one that is none."""
    if is_tensor_like(what):
        yield weight_of(name, kind_of(what), what, code)
    elif is_subclass(type(what), np.ma.MaskedArray):
        yield nothing(name, "array", code, _MASKED, "cpu")
    elif is_array(what):
        yield array_weight(name, what, code)
    elif is_storage(what):
        try:
            entry = weight_of(name, "tensor", tensor_of(what), code_of_tensor(what, code))
        except Exception:
            # It is freed, or elsewhere.
            return
        yield noted(entry, class_name(type(what)))
