"""The same container with other leaves: structure and classes are kept, and what was given is never written."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import torch

from tensornp.core.lowlevel.attributes import an_instance, own_attributes
from tensornp.core.tensor.containers import (
    BUILT_IN,
    DATACLASS,
    MAX_DEPTH,
    Container,
    container_of,
    fields_of,
    is_container,
    is_mapping,
)
from tensornp.core.tensor.paths import expression_of
from tensornp.core.tensor.stand_ins import stand_in_of
from tensornp.core.tensor.weight import is_weight
from tensornp.errors import BadRequestError, NotATensorError, TensornpError


def map_leaves(
    function: Callable[[Any], Any],
    tree: Any,
    *,
    leaf_type: type | tuple[type, ...],
    _parents: tuple[int, ...] = (),
    _made: dict[int, tuple[Any, Any]] | None = None,
) -> Any:
    """Return `tree` with `function` applied to each leaf of `leaf_type`, structure and container types kept.

    A container of a class of its own in which nothing changes is given back itself. A mapping that is no dict, such as
    a TensorDict, becomes a dict. What was one container in several places is one container again.

    Raises
    ------
    BadRequestError
        If a container holds itself, or there can be none of its class with other leaves.
    NotATensorError
        If a container holds weights of an explorer, or is one.
    TensornpError
        Of `function`, whose ``entry`` then says for which leaf.
    """
    # By its type: a mock says of itself that it is what it stands for.
    if _is_leaf(tree, leaf_type):
        return function(tree)
    if _parents and is_weight(tree):
        raise NotATensorError(
            "a weight of an explorer is not converted in a container; "
            "take {name: e.to_numpy() for name, e in w.items()} of an explorer w"
        )
    if not is_container(tree):
        return tree
    if id(tree) in _parents or len(_parents) >= MAX_DEPTH:
        depth = "that holds itself" if id(tree) in _parents else f"below {MAX_DEPTH} levels of containers"
        raise BadRequestError(f"{an_instance(tree)} {depth} cannot be converted; pass its parts")
    # With the original, whose identity would otherwise come again.
    made = {} if _made is None else _made
    if id(tree) not in made:
        made[id(tree)] = tree, _converted(function, tree, leaf_type, (*_parents, id(tree)), made)
    return made[id(tree)][1]


def _converted(
    function: Callable[[Any], Any], tree: Any, leaf_type: type | tuple[type, ...], parents: tuple[int, ...],
    made: dict[int, tuple[Any, Any]],
) -> Any:  # fmt: skip
    """Return a container with other leaves."""

    def convert(step: Any, child: Any) -> Any:
        try:
            return map_leaves(function, child, leaf_type=leaf_type, _parents=parents, _made=made)
        except TensornpError as error:
            error.entry = expression_of((None, step)) + error.entry
            raise

    cls = type(tree)
    container = _MAPPING if is_mapping(cls) or issubclass(cls, dict) else container_of(cls) or _MAPPING
    try:
        before = list(container.items(tree))
    except RecursionError as error:
        raise BadRequestError(f"{an_instance(tree)} goes on without end where its items are; pass a dict") from error
    after = [(key, convert(container.step(key), child)) for key, child in before]
    if container is DATACLASS:
        _check_computed(tree, convert)
    is_plain = any(cls is base for base in (dict, list, tuple))
    if not is_plain and all(new is old for (_, new), (_, old) in zip(after, before, strict=True)):
        return tree
    return _SAME[container](tree, after)


def _is_leaf(obj: Any, leaf_type: type | tuple[type, ...]) -> bool:
    if issubclass(type(obj), leaf_type):
        return True
    takes_tensors = leaf_type is torch.Tensor or (isinstance(leaf_type, tuple) and torch.Tensor in leaf_type)
    return takes_tensors and stand_in_of(obj) is not None


def _check_computed(tree: Any, convert: Callable[[Any, Any], Any]) -> None:
    """Refuse a dataclass of which a property gives what would have to be converted: it cannot be set in a copy."""
    own = dict(own_attributes(tree))
    for field in fields_of(type(tree)):
        value = getattr(tree, field.name, None) if field.name not in own else None
        if value is not None and convert(f".{field.name}", value) is not value:
            raise BadRequestError(
                f"{field.name} of {type(tree).__name__} is computed by a property, which cannot be replaced; "
                f"convert .{field.name}"
            )


def _copy_of(original: Any) -> Any:
    """Return a shallow copy, which shares nothing that is about to be written; None where the class makes none."""
    try:
        other = copy.copy(original)
    except Exception:
        return None
    is_apart = other is not original and type(other) is type(original)
    attributes = getattr(other, "__dict__", None)
    return other if is_apart and (attributes is None or attributes is not getattr(original, "__dict__", None)) else None


_Items = list[tuple[Any, Any]]


def _same_mapping(original: Any, items: _Items) -> Any:
    is_own = type(original) is not dict and issubclass(type(original), dict)
    other = _copy_of(original) if is_own else None
    if other is None:
        return dict(items)
    try:
        for key, item in items:
            other[key] = item
        is_kept = all(dict.__getitem__(other, key) is item for key, item in items)
    except Exception:
        # A class that takes tensors only.
        is_kept = False
    # One that makes tensors of what it is given would hold no array.
    return other if is_kept else dict(items)


def _same_list(original: list[Any], items: _Items) -> Any:
    other = _copy_of(original) if type(original) is not list else None
    if other is None:
        return _children(items)
    list.__setitem__(other, slice(None), _children(items))
    return other


def _same_tuple(original: tuple[Any, ...], items: _Items) -> Any:
    kind: Any = type(original)
    if callable(getattr(kind, "_make", None)):
        return kind._make(_children(items))
    try:
        # Past the constructor of a subclass, which may ask for other arguments.
        other: Any = tuple.__new__(cast(type[tuple[Any, ...]], kind), _children(items))
    except TypeError:
        # Not for torch.Size and torch.return_types, which are written in C.
        return kind(_children(items))
    if hasattr(original, "__dict__"):
        vars(other).update(vars(original))
    return other


def _same_deque(original: deque[Any], items: _Items) -> Any:
    other = _copy_of(original)
    if other is None:
        return deque(_children(items), original.maxlen)
    deque.clear(other)
    deque.extend(other, _children(items))
    return other


def _same_set(original: Any, items: _Items) -> Any:
    base = set if issubclass(type(original), set) else frozenset
    try:
        others = base(_children(items))
    except TypeError as error:
        raise BadRequestError("a set cannot hold arrays, which have no hash; pass a list of its members") from error
    try:
        return others if type(original) is base else type(original)(others)
    except Exception:
        # A constructor of its own, that wants other arguments.
        return others


def _same_dataclass(original: Any, items: _Items) -> Any:
    """Return a copy with other fields; nothing of the class runs, which may check that they are tensors."""
    other = _copy_of(original)
    if other is None:
        raise BadRequestError(f"{an_instance(original)} cannot be copied; convert its fields")
    for name, value in items:
        object.__setattr__(other, name, value)
    return other


def _children(items: _Items) -> list[Any]:
    return [child for _, child in items]


_MAPPING = Container(lambda held: iter(held.items()), lambda key: (key,))
"""How mappings are read here, dicts too: by what their class says, since it was asked to."""
_SAME: dict[Container, Callable[[Any, _Items], Any]] = {
    _MAPPING: _same_mapping,
    BUILT_IN[list]: _same_list,
    BUILT_IN[tuple]: _same_tuple,
    BUILT_IN[deque]: _same_deque,
    BUILT_IN[set]: _same_set,
    BUILT_IN[frozenset]: _same_set,
    DATACLASS: _same_dataclass,
}
