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
    made = {} if _made is None else _made
    if id(tree) in made:
        return made[id(tree)][1]
    cls, parents = type(tree), (*_parents, id(tree))
    container = _MAPPING if issubclass(cls, (dict, Mapping)) else container_of(cls) or _MAPPING
    before, after = list(container.items(tree)), []
    for key, child in before:
        step = container.step(key)
        try:
            after.append((key, map_leaves(function, child, leaf_type=leaf_type, _parents=parents, _made=made)))
        except TensornpError as error:
            error.entry = expression_of((None, step)) + error.entry
            raise
    is_same = all(new is old for (_, new), (_, old) in zip(after, before, strict=True))
    found = tree if is_same and cls not in (dict, list, tuple) else _rebuilt(tree, container, after)
    # The original stays alive, so its id is not used again.
    made[id(tree)] = tree, found
    return found


def _rebuilt(original: Any, container: Container, items: list[tuple[Any, Any]]) -> Any:
    """Return a container like `original` with other items."""
    cls, children = type(original), [child for _, child in items]
    is_dict = issubclass(cls, dict)
    if cls is list:
        return children
    if cls is dict or (container is _MAPPING and not is_dict):
        return dict(items)
    if issubclass(cls, tuple):
        make: Any = getattr(cls, "_make", None)
        try:
            # The constructor of a subclass may take other arguments.
            return make(children) if callable(make) else tuple.__new__(cls, children)
        except TypeError:
            # torch.Size and torch.return_types are written in C.
            return cls(children)
    try:
        other = copy.copy(original)
        for key, item in items if is_dict else ():
            other[key] = item
    except Exception as error:
        if is_dict:
            return dict(items)
        raise BadRequestError(f"{an_instance(original)} cannot be copied; convert its fields") from error
    if is_dict:
        # A class may make tensors of arrays.
        is_kept = other is not original and all(dict.__getitem__(other, key) is item for key, item in items)
        return other if is_kept else dict(items)
    if container is DATACLASS:
        for name, value in items:
            # Frozen classes and checks of types do not stop this.
            object.__setattr__(other, name, value)
    elif issubclass(cls, list):
        list.__setitem__(other, slice(None), children)
    else:
        other.clear()
        other.extend(children)
    return other


_MAPPING = Container(lambda held: iter(held.items()), lambda key: (key,))
"""Mappings and dicts are read by the methods of their class, since a conversion was requested."""
