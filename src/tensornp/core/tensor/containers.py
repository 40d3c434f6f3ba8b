"""Walk containers, name their leaves, and copy them with other leaves; structure and classes stay."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import Weight, an_instance, is_weight, own_attributes
from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path, expression_of
from tensornp.core.tensor.stand_ins import stand_in_of
from tensornp.errors import BadRequestError, NotATensorError, TensornpError

MAX_DEPTH = 100
"""Levels that are followed; a container that holds itself is found before that."""


class Container(NamedTuple):
    """Reads containers of one class: `items` yields children by key, `step` is the path to one of them."""

    items: Callable[[Any], Iterator[tuple[Any, Any]]]
    step: Callable[[Any], Any]


def items_of(held: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    base = OrderedDict if issubclass(type(held), OrderedDict) else dict
    return iter(list(base.items(held)))


def _tuple_items(held: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    children = tuple.__iter__(held)
    if type(held) is tuple:
        return enumerate(children)
    # torch.return_types name their fields for pattern matching only.
    member = "__match_args__" if type(held).__module__ == "torch.return_types" else "_fields"
    found = next((vars(base)[member] for base in type(held).__mro__ if member in vars(base)), ())
    names = [legible(str(name)) for name in found] if isinstance(found, tuple) else []
    return ((names[i] if i < len(names) else i, child) for i, child in enumerate(children))


def _field_items(held: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fields that lie in the object itself: a property would be computed."""
    own = dict(own_attributes(held))
    return ((field.name, own[field.name]) for field in dataclasses.fields(held) if field.name in own)


BUILT_IN: dict[type, Container] = {
    dict: Container(items_of, lambda key: (key,)),
    list: Container(lambda held: enumerate(list.__iter__(held)), "[{}]".format),
    tuple: Container(_tuple_items, lambda key: f".{key}" if isinstance(key, str) else f"[{key}]"),
    # It must not change while it is read; lists and tuples may.
    deque: Container(lambda held: enumerate(list(deque.__iter__(held))), "[{}]".format),
}
DATACLASS = Container(_field_items, ".{}".format)


def container_of(cls: type) -> Container | None:
    for base, container in BUILT_IN.items():
        if issubclass(cls, base):
            return container
    # A module holds parameters, whatever its fields, and a weight of an explorer is one thing.
    is_one = issubclass(cls, (torch.nn.Module, Weight)) or cls.__module__.partition(".")[0] == "tensornp"
    return DATACLASS if dataclasses.is_dataclass(cls) and not is_one else None


def is_container(obj: Any) -> bool:
    """Return whether `obj` holds others that are shown and converted with it."""
    cls = type(obj)
    if stand_in_of(obj) is not None:
        return False
    return container_of(cls) is not None or issubclass(cls, Mapping)


def is_seen(container: Any) -> bool:
    """Return whether a container can be read without loading or computing its items."""
    return container_of(type(container)) is not None or _children(container) is not None


LEAVES = PLAIN_CLASSES | {id(torch.Tensor), id(torch.nn.Parameter)}


def leaves(
    tree: Any,
    _path: Path | None = None,
    _parents: tuple[int, ...] = (),
    *,
    is_leaf: Callable[[Any], bool] = lambda _: False,
) -> Iterator[tuple[Path | None, Any]]:
    """Yield each leaf with its path, depth first; no code of the user runs.

    A container that holds itself is a leaf the second time, and other mappings than `dict` are leaves, since they may
    load or compute their values; a UserDict or a TensorDict is read from its inner dictionary.
    """
    is_end = id(tree) in _parents or len(_parents) >= MAX_DEPTH or is_leaf(tree)
    children = None if is_end else _children(tree)
    if children is None:
        yield _path, tree
        return
    below = (*_parents, id(tree))
    is_empty = True
    for step, child in children:
        is_empty = False
        if id(type(child)) in LEAVES:
            yield (_path, step), child
        else:
            yield from leaves(child, (_path, step), below, is_leaf=is_leaf)
    if is_empty:
        # An empty container counts as a leaf.
        yield _path, tree


def _children(tree: Any) -> Iterator[tuple[Any, Any]] | None:
    try:
        if not is_container(tree):
            return None
        container = container_of(type(tree))
        if container is not None:
            return ((container.step(key), child) for key, child in container.items(tree))
        # A known mapping keeps its items in a dictionary.
        attribute = kept_in(type(tree))
        kept: Any = next((held for name, held in own_attributes(tree) if name == attribute), None)
        return (((key,), child) for key, child in items_of(kept)) if issubclass(type(kept), dict) else None
    except Exception:
        return None


_KEPT_IN = {
    ("collections", "UserDict"): "data",
    ("tensordict", "TensorDict"): "_tensordict",
    ("transformers", "BatchEncoding"): "data",
    ("transformers", "BatchFeature"): "data",
}
"""Mappings by library and name, and the attribute with the dictionary whose items are theirs."""
_OVERRIDES = ("__getitem__", "__iter__", "__getattribute__", "keys", "items", "values")


def kept_in(cls: type) -> str:
    """Return the attribute with the items of a known mapping class, or ""."""
    for base in cls.__mro__:
        attribute = _KEPT_IN.get((base.__module__.partition(".")[0], base.__name__))
        if attribute is not None:
            return attribute
        if any(name in vars(base) for name in _OVERRIDES):
            break
    return ""


def map_leaves(
    function: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool],
    _parents: tuple[int, ...] = (),
    _made: dict[int, tuple[Any, Any]] | None = None,
) -> Any:
    """Return a copy of `tree` with `function` applied to each leaf.

    A subclass in which nothing changes is returned itself; a mapping that is not a dict becomes one. The ``entry`` of
    an error of `function` names the leaf.
    """
    if is_leaf(tree):
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
    cls = type(tree)
    container = _MAPPING if issubclass(cls, (dict, Mapping)) else container_of(cls) or _MAPPING
    before, after = list(container.items(tree)), {}
    for key, child in before:
        try:
            after[key] = map_leaves(function, child, is_leaf, (*_parents, id(tree)), made)
        except TensornpError as error:
            error.entry = expression_of((None, container.step(key))) + error.entry
            raise
    is_same = all(after[key] is old for key, old in before)
    found = tree if is_same and cls not in (dict, list, tuple) else _rebuilt(tree, container, after)
    # The original stays alive, so its id is not used again.
    made[id(tree)] = tree, found
    return found


def _rebuilt(original: Any, container: Container, items: dict[Any, Any]) -> Any:
    cls, children = type(original), list(items.values())
    is_dict = issubclass(cls, dict)
    if cls is list:
        return children
    if cls is dict or (container is _MAPPING and not is_dict):
        return items
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
        if is_dict:
            for key, item in items.items():
                other[key] = item
            # A class may make tensors of arrays.
            is_kept = other is not original and all(dict.__getitem__(other, key) is item for key, item in items.items())
            return other if is_kept else items
    except Exception as error:
        if is_dict:
            return items
        raise BadRequestError(f"{an_instance(original)} cannot be copied; convert its fields") from error
    if container is DATACLASS:
        for name, value in items.items():
            # Frozen classes and checks of types do not stop this.
            object.__setattr__(other, name, value)
    else:
        other.clear()
        other.extend(children)
    return other


_MAPPING = Container(lambda held: iter(held.items()), lambda key: (key,))
"""Mappings and dicts are read by the methods of their class, since a conversion was requested."""
