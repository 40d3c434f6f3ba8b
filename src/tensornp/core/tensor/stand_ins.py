"""Register classes whose instances stand for a tensor."""

from __future__ import annotations

import math
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_array, is_tensor
from tensornp.core.lowlevel.text import legible
from tensornp.core.lowlevel.torch_private import storage_address
from tensornp.core.tensor.kinds import STAND_IN, Kind, Obstacle
from tensornp.core.tensor.paths import is_attribute_name
from tensornp.errors import BadRequestError, UnsupportedTensorError

PROTOCOL = "__tensornp__"
"""The method by which a class says it without importing tensornp."""
_COMPUTED = Obstacle("of class {type_name}", "{type_name} computes its values, so they are new memory")
_OURS = frozenset(map(id, (
    object, type, torch.Tensor, torch.nn.Parameter, torch.nn.Module, np.ndarray, dict, list, tuple, set, frozenset, str,
    bytes, bytearray, int, float, complex, bool, type(None),
)))  # fmt: skip
"""Classes by identity that everybody has, or that are shown already."""
_NOBODYS = (sys.stdlib_module_names - {"__main__"}) | {"torch", "numpy"}
MAX_SECONDS_UNASKED = 0.001
"""Where an instance is not asked for, but met in a search: `values` is called if it has ever been as quick as that."""


@dataclass(slots=True)
class StandIn:
    """How instances of one class are read.

    Attributes
    ----------
    kind : Kind
    name : str
        What `values` is called: "dequantize".
    values : callable
        Returns the tensor or the array that an instance stands for.
    detail : str or callable
        A few words, or what returns them for an instance.
    has_own : bool
        Whether the values of any instance were found in its own memory so far.
    quickest : float
        Seconds that `values` took at least, in the quickest of all calls so far; infinite before the first.
    """

    kind: Kind
    name: str
    values: Callable[[Any], Any]
    detail: str | Callable[[Any], str] = ""
    has_own: bool = field(default=False, compare=False)
    quickest: float = field(default=math.inf, compare=False)


_Table = dict[int, tuple[weakref.ref[type], StandIn]]
"""By the identity of the class: a metaclass of the user's may compute hashes."""
_registered: _Table = {}
_by_protocol: _Table = {}


def register_kind(
    cls: type,
    values: Callable[[Any], torch.Tensor | np.ndarray[Any, Any]] | None = None,
    *,
    label: str = "",
    detail: str | Callable[[Any], str] = "",
) -> None:
    """Display, convert and find instances of a class as the tensor that `values` returns.

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
    - A search calls it only if it has ever taken less than a millisecond.
    - A second registration replaces the first one.
    """
    if values is None:
        _registered.pop(id(cls), None)
        return
    _check(cls, values)
    if not isinstance(label, str) or not (isinstance(detail, str) or callable(detail)):
        raise BadRequestError("label must be a string, and detail a string or a function of one instance")
    name = getattr(values, "__name__", "")
    # In the code, t is the object itself.
    name = name if is_attribute_name(name) and name != "t" else "values"
    is_method = any(vars(base).get(name) is values for base in cls.__mro__)
    access = f"t.{name}()" if is_method else f"{name}(t)"
    kind = replace(STAND_IN, label=legible(label) or STAND_IN.label, access=access)
    _put(_registered, cls, StandIn(kind, name, values, detail))


def _put(table: _Table, cls: type, stand_in: StandIn) -> StandIn:
    """Keep `stand_in` for as long as the class lives."""
    key = id(cls)
    table[key] = weakref.ref(cls, lambda _: table.pop(key, None)), stand_in
    return stand_in


def _check(cls: Any, values: Any) -> None:
    if not type.__subclasscheck__(type, type(cls)):
        raise BadRequestError(f"register_kind takes a class, not an instance of {type(cls).__name__}")
    if id(cls) in _OURS or cls.__module__.partition(".")[0] in _NOBODYS:
        raise BadRequestError(f"{cls.__name__} cannot be registered; register a subclass")
    if not callable(values):
        raise BadRequestError(f"values must be a function of one instance, got {an_instance(values)}")


def stand_in_of(obj: Any) -> StandIn | None:
    """Return the registration of the class of `obj`, or None."""
    return stand_in_for(type(obj))


def stand_in_for(cls: type) -> StandIn | None:
    """Return how instances of `cls` stand for a tensor; None where they do not."""
    if id(cls) in _OURS:
        return None
    for base in cls.__mro__:
        _, found = _registered.get(id(base), (None, None))
        if found is not None:
            return found
        if id(base) not in _OURS and PROTOCOL in vars(base):
            _, found = _by_protocol.get(id(cls), (None, None))
            return found or _put(_by_protocol, cls, StandIn(STAND_IN, PROTOCOL, _call_protocol))
    return None


def is_tensor_like(obj: Any) -> bool:
    """Return whether `obj` is a tensor, or stands for one; by its type alone."""
    return is_tensor(obj) or stand_in_of(obj) is not None


def _call_protocol(obj: Any) -> Any:
    return getattr(type(obj), PROTOCOL)(obj)


def stood_for(obj: Any) -> torch.Tensor:
    """Return the tensor that `obj` stands for; an array is one over the same memory.

    Raises
    ------
    UnsupportedTensorError
        If its class cannot tell, or gives anything else.
    """
    stand_in = stand_in_of(obj)
    if stand_in is None:
        raise UnsupportedTensorError(f"{type(obj).__name__} stands for a tensor no longer; register it again")
    return _asked(obj, stand_in)[0]


def _asked(obj: Any, stand_in: StandIn) -> tuple[torch.Tensor, bool]:
    """Return the tensor that `obj` stands for, and whether that was an array."""
    said = f"{stand_in.name}() of {type(obj).__name__}"
    try:
        begin = time.perf_counter()
        with modes.outside_modes(), modes.with_overrides():
            values = stand_in.values(obj)
        stand_in.quickest = min(stand_in.quickest, time.perf_counter() - begin)
    except Exception as error:
        raise UnsupportedTensorError(f"{said} failed ({error_text(error)}); convert what it holds") from error
    if is_array(values):
        if issubclass(type(values), np.ma.MaskedArray):
            raise UnsupportedTensorError(f"{said} gives a masked array; have it return a MaskedTensor")
        if not values.flags.writeable:
            # torch has no read-only tensors, and a copy of it would not be what the object has.
            raise UnsupportedTensorError(f"{said} gives a read-only array; have it return a writeable one, or a tensor")
        try:
            return torch.from_numpy(values), True
        except (TypeError, ValueError) as error:
            raise UnsupportedTensorError(
                f"{said} gives an array that torch does not take ({error_text(error)}); have it return a tensor"
            ) from error
    if not is_tensor(values) or stand_in_of(values) is not None:
        # Of one that stands for another one itself, there might be no end.
        what = "the object itself" if values is obj else an_instance(values)
        raise UnsupportedTensorError(f"{said} gives {what}; have it return a tensor or a NumPy array")
    return values, False


def read_stand_in(obj: Any, stand_in: StandIn) -> tuple[torch.Tensor, Kind, str]:
    """Return the tensor that `obj` stands for, its kind, which tells new memory, and the detail."""
    values, is_own, is_array = _asked_twice(obj, stand_in)
    kind = stand_in.kind if is_own else replace(stand_in.kind, obstacle=_COMPUTED)
    if is_array:
        kind = replace(kind, access=f"torch.from_numpy({kind.access})")
    if isinstance(stand_in.detail, str):
        return values, kind, legible(stand_in.detail)
    try:
        return values, kind, legible(str(stand_in.detail(obj)))
    except Exception as error:
        return values, kind, f"detail failed ({error_text(error)})"


def own_tensor_of(obj: Any) -> torch.Tensor | None:
    """Return the tensor of `obj` for a search; None if it is computed, or slow.

    Nothing is called before someone has looked at an instance of its class that has them.
    """
    stand_in = stand_in_of(obj)
    if stand_in is None or not stand_in.has_own or stand_in.quickest > MAX_SECONDS_UNASKED:
        return None
    try:
        values, is_own, _ = _asked_twice(obj, stand_in)
    except UnsupportedTensorError:
        return None
    return values if is_own else None


def _asked_twice(obj: Any, stand_in: StandIn) -> tuple[torch.Tensor, bool, bool]:
    """Return the tensor, whether it is the object's own memory, and whether it was an array.

    Where a second one lies while the first one is there tells whether it is made anew each time.
    """
    values, is_array = _asked(obj, stand_in)
    is_own = _address(values) == _address(_asked(obj, stand_in)[0])
    stand_in.has_own |= is_own
    return values, is_own, is_array


def _address(values: torch.Tensor) -> object:
    """Return what tells one memory from another; of tensors that have none, whether it is the same object."""
    try:
        return storage_address(values) or id(values)
    except Exception:
        return id(values)
