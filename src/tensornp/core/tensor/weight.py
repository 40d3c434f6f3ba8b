"""The protocol of a weight of an explorer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from tensornp.core.lowlevel.attributes import is_array


class Weight:
    """A named weight, whose values are read on request."""

    __slots__ = ()
    to_numpy: Callable[..., Any]
    _values: Callable[[], Any]
    _values_here: Callable[[], Any]


def is_weight(obj: Any) -> TypeGuard[Weight]:
    return issubclass(type(obj), Weight)


def values_of(obj: Any) -> Any:
    """Return the source of the values of a weight; other objects are returned."""
    return obj._values() if is_weight(obj) else obj


def refused(obj: Any, cure: str = "its array, entry.to_numpy()", of_model: str = "", of_array: str = "") -> str:
    """Describe a refused object, with the object to pass instead of a weight, a model or an array."""
    if is_weight(obj):
        return f"a weight of an explorer; pass {cure}"
    import torch

    is_model = any(issubclass(type(obj), base) for base in (torch.nn.Module, torch.optim.Optimizer))
    more = of_model if is_model else of_array if is_array(obj) else ""
    return f"'{type(obj).__name__}'" + (f"; {more}" if more else "")


ONE_OR_ALL = "take one of its weights, tnp.weights(...)[name], or all by tnp.weights(...).scan()"
