"""What an object itself is and holds, read from its type, its dictionary and its slots: nothing of its class runs."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import with_article

if TYPE_CHECKING:
    import torch

_CHUNK = 4096
OF_LIBRARIES = frozenset(
    "_ddp_mp_hook_state _fp_param _in_backward_optimizers _local_tensor _mp_param _optimizer_classes _optimizer_kwargs "
    "_spec _st_info grad_sample main_grad summed_grad".split()
)
"""Attributes of tensors in which torch and others keep parts, gradients, the same values in another dtype, hooks."""


def own_attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an instance's own attributes, those in its dictionary first."""
    cls = type(obj)
    descriptors = _descriptors_of(cls)
    mro = mro_of(cls)
    for i, name in descriptors:
        try:
            found = class_members(mro[i])[name].__get__(obj)
        except (AttributeError, LookupError):
            # A slot that was never filled, or a class whose bases have changed.
            continue
        if name == "__dict__":
            yield from in_chunks(iter(dict.items(found)))
        else:
            yield name, found


def set_own_attribute(obj: Any, name: str, value: Any) -> None:
    """Set what `own_attributes` has yielded by that name: past a property of that name, `__setattr__`, and frozen."""
    for i, described in _descriptors_of(type(obj)):
        descriptor = class_members(mro_of(type(obj))[i])[described]
        if described == name:
            descriptor.__set__(obj, value)
            return
        if described == "__dict__" and dict.__contains__(descriptor.__get__(obj), name):
            dict.__setitem__(descriptor.__get__(obj), name, value)
            return


def dict_of(obj: Any) -> dict[str, Any] | None:
    """Return the dictionary of an instance itself, past a property of that name; None where it has none."""
    for i, described in _descriptors_of(type(obj)):
        if described == "__dict__":
            found: dict[str, Any] = class_members(mro_of(type(obj))[i])[described].__get__(obj)
            return found
    return None


def has_attributes(cls: type) -> bool:
    """Return whether instances of `cls` may hold anything by name."""
    return bool(_descriptors_of(cls))


def is_subclass(cls: type, base: type) -> bool:
    """Return whether `cls` derives from `base`; neither metaclass is asked."""
    return type.__subclasscheck__(base, cls)


def is_tensor(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether `obj` is a tensor by its type: `isinstance` would believe what a mock or a proxy says it is."""
    return type.__subclasscheck__(_tensor or _class_of_tensors(), type(obj))


_tensor: type | None = None
"""The class of tensors, once torch has been imported: whoever has none need not import it."""


class _NoTensor:
    """Stands for that class before."""


def _class_of_tensors() -> type:
    global _tensor  # noqa: PLW0603
    found: type | None = getattr(sys.modules.get("torch"), "Tensor", None)
    if found is None:
        return _NoTensor
    _USUAL.add(id(type(found)))
    _tensor = found
    return found


def is_array(obj: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Return whether `obj` is an array, in the same way."""
    return type.__subclasscheck__(np.ndarray, type(obj))


def class_name(cls: type) -> str:
    """Return the name that `cls` was made with, `legible`, past a metaclass that computes one, or raises."""
    return legible(_name_of(cls))


def an_instance(obj: object) -> str:
    """Return what `obj` is, its class behind an article: ``an int``; of None, that."""
    return "None" if obj is None else with_article(class_name(type(obj)))


def error_text(error: BaseException) -> str:
    """Return the class and the message of an error, `legible`; one whose message cannot be had has its class alone."""
    try:
        message = legible(str(error), keep="\n")
    except Exception:
        message = ""
    return f"{class_name(type(error))}: {message}" if message else class_name(type(error))


def module_name(cls: type) -> str:
    """Return the module of `cls`; empty where that is no text."""
    try:
        name = _module_of(cls)
    except AttributeError:
        return ""
    return name if type(name) is str else ""


def mro_of(cls: type) -> tuple[type, ...]:
    """Return `cls` and the classes that it derives from, past a metaclass that computes them, or raises."""
    return _mro_of(cls)  # type: ignore[no-any-return]


def class_members(cls: type) -> Mapping[str, Any]:
    """Return what the class statement of `cls` has bound, in the same way."""
    return _members_of(cls)  # type: ignore[no-any-return]


_name_of, _module_of, _mro_of, _members_of = (
    type.__dict__[name].__get__ for name in ("__name__", "__module__", "__mro__", "__dict__")
)


_hash, _equals, _getattribute = type.__hash__, type.__eq__, type.__getattribute__
_USUAL = {id(type)}
"""The metaclasses of nearly all classes, by identity; that of tensors too, once there are some."""
_Descriptors = tuple[tuple[int, str], ...]
_DESCRIPTORS: WeakKeyDictionary[type, _Descriptors] = WeakKeyDictionary()
"""By class, which a cell may define again and again: so nothing is kept that holds the class, as its descriptors do."""


def is_plain_class(cls: type) -> bool:
    """Return whether a class can be compared, hashed and read: a metaclass of the user's may compute that, or raise."""
    kind = type(cls)
    return kind is type or (
        type(kind) is type
        and kind.__hash__ is _hash
        and kind.__eq__ is _equals
        and kind.__getattribute__ is _getattribute
    )


def _descriptors_of(cls: type) -> _Descriptors:
    """Return in which of the bases of `cls`, and by which name, what its instances hold is described."""
    if id(type(cls)) not in _USUAL and not is_plain_class(cls):
        return _found_descriptors(cls)
    descriptors = _DESCRIPTORS.get(cls)
    if descriptors is None:
        descriptors = _DESCRIPTORS[cls] = _found_descriptors(cls)
    return descriptors


def _found_descriptors(cls: type) -> _Descriptors:
    """Return the dictionary, past a property of that name, and the slots."""
    described = [(i, name, type(found)) for i, base in enumerate(mro_of(cls)) for name, found in _items(base)]
    # `types.SimpleNamespace` has it as a member.
    kinds = (types.GetSetDescriptorType, types.MemberDescriptorType)
    dictionaries = [(i, name) for i, name, kind in described if name == "__dict__" and kind in kinds]
    slots = [(i, name) for i, name, kind in described if name != "__dict__" and kind is types.MemberDescriptorType]
    return (*dictionaries[:1], *slots)


def _items(cls: type) -> list[tuple[str, Any]]:
    return copied(lambda: list(class_members(cls).items()))  # type: ignore[no-any-return]


def in_chunks(items: Iterator[Any]) -> Iterator[Any]:
    """Yield what `items` has; some thousands are taken at once, which another thread cannot interrupt.

    All of a huge container at once would take long, and cost a collection of garbage.
    """
    # Up to an empty list, and without a frame for each item.
    return itertools.chain.from_iterable(iter(lambda: list(itertools.islice(items, _CHUNK)), []))


def copied(copy: Callable[[], Any]) -> Any:
    """Return what `copy` makes of a container that another thread may be changing; it is asked a few times."""
    for _ in range(3):
        try:
            return copy()
        except RuntimeError:
            continue
    return copy()
