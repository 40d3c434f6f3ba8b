"""Register classes whose instances stand for a tensor."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_array, is_tensor
from tensornp.core.lowlevel.text import legible
from tensornp.core.lowlevel.torch_private import storage_address
from tensornp.core.tensor.form import Kind, Obstacle, Step
from tensornp.core.tensor.paths import is_attribute_name
from tensornp.errors import BadRequestError, UnsupportedTensorError

PROTOCOL = "__tensornp__"
_NOBODYS = (sys.stdlib_module_names - {"__main__"}) | {"torch", "numpy"}
"""Packages whose classes cannot be registered."""
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter, dict, list, tuple, str, bytes, int, float, bool, type(None)))
"""The most frequent classes, which are answered at once."""
_NEW_MEMORY = Obstacle("of class {type_name}", "{type_name} computes its values, so they are new memory")


class StandIn(Kind):
    """A registered class; `values` returns the tensor or array of an instance."""

    name = "stand-in"
    step = Step.STAND_IN
    sentence = "Of a class that stands for a tensor, as it says itself or as was registered; the array is of that one."

    def __init__(self, call: str, values: Callable[[Any], Any], access: str, label: str = "", words: Any = "") -> None:
        self.call = call
        self.access = access
        self.label = label or self.name
        self._values = values
        self._words = words

    def inner(self, t: Any) -> torch.Tensor:
        """Return the tensor that an instance stands for; an array gives a tensor over its memory."""
        return self._ask(t)[0]

    def detail(self, t: Any) -> str:
        if isinstance(self._words, str):
            return legible(self._words)
        try:
            return legible(str(self._words(t)))
        except Exception as error:
            return f"detail failed ({error_text(error)})"

    def resolved(self, t: Any) -> tuple[StandIn, torch.Tensor]:
        """Return the kind of an instance, with an obstacle if its memory is new, and its tensor."""
        values, is_from_array = self._ask(t)
        kind = copy.copy(self)
        # Memory is new if two results that live at once have different addresses.
        if _address(values) != _address(self._ask(t)[0]):
            kind.obstacle = _NEW_MEMORY
        if is_from_array:
            kind.access = f"torch.from_numpy({self.access})"
        return kind, values

    def _ask(self, t: Any) -> tuple[torch.Tensor, bool]:
        subject = f"{self.call}() of {type(t).__name__}"
        try:
            with modes.outside_modes(), modes.with_overrides():
                values = self._values(t)
        except Exception as error:
            raise UnsupportedTensorError(f"{subject} failed ({error_text(error)}); convert what it holds") from error
        is_from_array = is_array(values) and not isinstance(values, np.ma.MaskedArray) and values.flags.writeable
        # torch does not take some dtypes and strides.
        with contextlib.suppress(TypeError, ValueError):
            values = torch.from_numpy(values) if is_from_array else values
        if not is_tensor(values) or stand_in_of(values) is not None:
            # A stand-in for another stand-in might have no end.
            what = "the object itself" if values is t else an_instance(values)
            raise UnsupportedTensorError(
                f"{subject} gives {what}; have it return a tensor or a writeable array of its dtypes"
            )
        return values, is_from_array


def _address(values: torch.Tensor) -> object:
    try:
        return storage_address(values) or id(values)
    except Exception:
        return id(values)


_registered: WeakKeyDictionary[type, StandIn] = WeakKeyDictionary()


def register_kind(
    cls: type,
    values: Callable[[Any], torch.Tensor | np.ndarray[Any, Any]] | None = None,
    *,
    label: str = "",
    detail: str | Callable[[Any], str] = "",
) -> None:
    """Display and convert instances of a class as the tensor that `values` returns.

    Your own class can have a method ``__tensornp__`` instead, which returns that tensor.

    Parameters
    ----------
    cls : type
        Any class, also a subclass of `torch.Tensor`. Its subclasses are included.
    values : callable, optional
        Takes an instance and returns a tensor or a NumPy array. None removes the registration of `cls`.
    label : str, optional
        Text of the badge. The default is "stand-in".
    detail : str or callable, optional
        A few words after the label, or a function of an instance that returns them.

    Raises
    ------
    BadRequestError
        If `cls` is not a class, or is a class of Python, NumPy or torch, or `values` cannot be called.

    Notes
    -----
    - `values` is called whenever an instance is displayed, without gradients. It must be quick and change nothing.
    - If it returns the same memory each time, view and share are offered, otherwise copy alone.
    - If it raises, the card shows the error, and a conversion raises `UnsupportedTensorError`.
    - A search does not call it; it finds tensors in the attributes of an instance.
    - A second registration replaces the first one.
    """
    if values is None:
        _registered.pop(cls, None)
        return
    if not type.__subclasscheck__(type, type(cls)):
        raise BadRequestError(f"register_kind takes a class, not an instance of {type(cls).__name__}")
    if cls.__module__.partition(".")[0] in _NOBODYS:
        raise BadRequestError(f"{cls.__name__} cannot be registered; register a subclass")
    if not callable(values):
        raise BadRequestError(f"values must be a function of one instance, got {an_instance(values)}")
    if not isinstance(label, str) or not (isinstance(detail, str) or callable(detail)):
        raise BadRequestError("label must be a string, and detail a string or a function of one instance")
    name = getattr(values, "__name__", "")
    # In the code, t is the object itself.
    name = name if is_attribute_name(name) and name != "t" else "values"
    is_method = any(vars(base).get(name) is values for base in cls.__mro__)
    access = f"t.{name}()" if is_method else f"{name}(t)"
    _registered[cls] = StandIn(name, values, access, legible(label), detail)


def stand_in_of(obj: Any) -> StandIn | None:
    """Return the registration of the class or a base, or a stand-in for its method ``__tensornp__``."""
    cls = type(obj)
    if cls in _PLAIN:
        return None
    for base in cls.__mro__:
        if base in _registered:
            return _registered[base]
        if PROTOCOL in vars(base):
            return StandIn(PROTOCOL, lambda obj: getattr(type(obj), PROTOCOL)(obj), f"t.{PROTOCOL}()")
    return None


def is_tensor_like(obj: Any) -> bool:
    return is_tensor(obj) or stand_in_of(obj) is not None


def stood_for(obj: Any) -> torch.Tensor:
    stand_in = stand_in_of(obj)
    if stand_in is None:
        raise UnsupportedTensorError(f"{type(obj).__name__} stands for a tensor no longer; register it again")
    return stand_in.inner(obj)
