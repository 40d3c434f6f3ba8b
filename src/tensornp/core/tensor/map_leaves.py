"""Copy a container with other leaves; structure and classes stay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.tensor.containers import DATACLASS, MAX_DEPTH, Container, container_of, is_container
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
    """Return a copy of `tree` with `function` applied to each leaf of `leaf_type`.

    A subclass in which nothing changes is returned itself; a mapping that is not a dict becomes one. The ``entry`` of
    an error of `function` names the leaf.
    """
    types = leaf_type if isinstance(leaf_type, tuple) else (leaf_type,)
    if issubclass(type(tree), leaf_type) or (torch.Tensor in types and stand_in_of(tree) is not None):
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
    # The original stays alive, so its id is not used again.
    made = {} if _made is None else _made
    if id(tree) not in made:
        made[id(tree)] = tree, _converted(function, tree, leaf_type, (*_parents, id(tree)), made)
    return made[id(tree)][1]


def _converted(
    function: Callable[[Any], Any], tree: Any, leaf_type: type | tuple[type, ...], parents: tuple[int, ...],
    made: dict[int, tuple[Any, Any]],
) -> Any:  # fmt: skip
    def convert(step: Any, child: Any) -> Any:
        try:
            return map_leaves(function, child, leaf_type=leaf_type, _parents=parents, _made=made)
        except TensornpError as error:
            error.entry = expression_of((None, step)) + error.entry
            raise

    cls = type(tree)
    container = _MAPPING if issubclass(cls, (dict, Mapping)) else container_of(cls) or _MAPPING
    try:
        before = list(container.items(tree))
    except RecursionError as error:
        raise BadRequestError(f"{an_instance(tree)} has endless items; pass a dict") from error
    after = [(key, convert(container.step(key), child)) for key, child in before]
    is_plain = cls is dict or cls is list or cls is tuple
    if not is_plain and all(new is old for (_, new), (_, old) in zip(after, before, strict=True)):
        return tree
    return _same_mapping(tree, after) if container is _MAPPING else _same(tree, container is DATACLASS, after)


_Items = list[tuple[Any, Any]]


def _same_mapping(original: Any, items: _Items) -> Any:
    if type(original) is dict or not issubclass(type(original), dict):
        return dict(items)
    try:
        other = copy.copy(original)
        for key, item in items:
            other[key] = item
        is_kept = other is not original and all(dict.__getitem__(other, key) is item for key, item in items)
    except Exception:
        is_kept = False
    # A class may refuse arrays, or make tensors of them.
    return other if is_kept else dict(items)


def _same(original: Any, is_dataclass: bool, items: _Items) -> Any:
    cls, children = type(original), [child for _, child in items]
    if cls is list:
        return children
    if issubclass(cls, tuple):
        return _same_tuple(original, children)
    try:
        other = copy.copy(original)
    except Exception as error:
        raise BadRequestError(f"{an_instance(original)} cannot be copied; convert its fields") from error
    if is_dataclass:
        for name, value in items:
            # Frozen classes and checks of types do not stop this.
            object.__setattr__(other, name, value)
    elif issubclass(cls, list):
        list.__setitem__(other, slice(None), children)
    else:
        other.clear()
        other.extend(children)
    return other


def _same_tuple(original: tuple[Any, ...], children: list[Any]) -> Any:
    cls: Any = type(original)
    if callable(getattr(cls, "_make", None)):
        return cls._make(children)
    try:
        # The constructor of a subclass may take other arguments.
        other: Any = tuple.__new__(cls, children)
    except TypeError:
        # torch.Size and torch.return_types are written in C.
        return cls(children)
    if hasattr(original, "__dict__"):
        vars(other).update(vars(original))
    return other


_MAPPING = Container(lambda held: iter(held.items()), lambda key: (key,))
"""Mappings and dicts are read by the methods of their class, since a conversion was requested."""
