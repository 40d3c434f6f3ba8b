"""Read attributes of any object without running code of its class, and describe objects in errors."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np

from tensornp.core.lowlevel.text import legible, with_article

if TYPE_CHECKING:
    import torch

_DESCRIPTORS: WeakKeyDictionary[type, tuple[tuple[int, str], ...]] = WeakKeyDictionary()
"""The base and the name of each descriptor of a class; a descriptor itself would keep the class alive."""


def own_attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values in the dictionary and the slots of an object; properties do not run."""
    bases = type(obj).__mro__
    for i, name in descriptors_of(type(obj)):
        try:
            found = vars(bases[i])[name].__get__(obj)
        except (AttributeError, LookupError):
            # A slot without a value.
            continue
        if name == "__dict__":
            yield from list(found.items())
        else:
            yield name, found


def descriptors_of(cls: type) -> tuple[tuple[int, str], ...]:
    """Return base and name of the descriptors of the dictionary and the slots."""
    if cls not in _DESCRIPTORS:
        members = [(i, name, type(member)) for i, base in enumerate(cls.__mro__) for name, member in vars(base).items()]
        # `types.SimpleNamespace` has its dictionary as a member.
        kinds = (types.GetSetDescriptorType, types.MemberDescriptorType)
        dictionary = [(i, name) for i, name, kind in members if name == "__dict__" and kind in kinds][:1]
        slots = [(i, name) for i, name, kind in members if name != "__dict__" and kind is types.MemberDescriptorType]
        _DESCRIPTORS[cls] = (*dictionary, *slots)
    return _DESCRIPTORS[cls]


def is_tensor(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether the type of `obj` is a tensor class; does not import torch, and ignores mocks."""
    cls = getattr(sys.modules.get("torch"), "Tensor", None)
    return cls is not None and issubclass(type(obj), cls)


def is_array(obj: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    return issubclass(type(obj), np.ndarray)


def an_instance(obj: object) -> str:
    """Return the class of `obj` with its article: ``an int``; None for None."""
    return "None" if obj is None else with_article(type(obj).__name__)


def error_text(error: BaseException) -> str:
    try:
        message = legible(str(error), keep="\n")
    except Exception:
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


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
