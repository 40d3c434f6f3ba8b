"""The one walk of containers: what is one, what it holds, its leaves by name, and the same tree with other leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import torch

from tensornp.core.lowlevel.attributes import (
    class_members,
    class_name,
    copied,
    in_chunks,
    is_subclass,
    module_name,
    mro_of,
    own_attributes,
)
from tensornp.core.lowlevel.legible import legible
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path, expression_of
from tensornp.core.tensor.stand_ins import stand_in_for, stand_in_of
from tensornp.errors import BadRequestError, TensornpError

MAX_DEPTH = 100
"""Levels that are followed; a container that holds itself is found before that."""

IN_SET = "{…}"
"""The step to a member of a set: it has no expression."""


class Container(NamedTuple):
    """How the containers of one class are read; nothing of the user's runs.

    Attributes
    ----------
    items : callable
        Of a container: its children, each with its key, index or field.
    step : callable
        Of a key, index or field: the last step of the path to that child.
    """

    items: Callable[[Any], Iterator[tuple[Any, Any]]]
    step: Callable[[Any], Any]


def items_of(held: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the items as `dict` itself has them, whatever a subclass makes of them.

    RuntimeError if a huge one grows meanwhile.
    """
    return in_chunks(iter(dict.items(held)))


def _tuple_items(held: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    children = tuple.__iter__(held)
    if type(held) is tuple:
        return enumerate(children)
    names = _field_names(type(held))
    return ((names[i] if i < len(names) else i, child) for i, child in enumerate(children))


def _field_names(cls: type) -> tuple[str, ...]:
    # torch.return_types name their fields for pattern matching only.
    member = "__match_args__" if module_name(cls) == "torch.return_types" else "_fields"
    found = next((class_members(base)[member] for base in mro_of(cls) if member in class_members(base)), ())
    return tuple(legible(str(name)) for name in found) if isinstance(found, tuple) else ()


def _deque_items(held: deque[Any]) -> Iterator[tuple[Any, Any]]:
    # It must not change while it is read; lists and tuples may.
    return enumerate(copied(lambda: list(deque.__iter__(held))))


def _set_items(base: Any) -> Callable[[Any], Iterator[tuple[Any, Any]]]:
    return lambda held: ((None, child) for child in in_chunks(base.__iter__(held)))


def _field_items(held: Any) -> Iterator[tuple[Any, Any]]:
    own = dict(own_attributes(held))
    for field in dataclasses.fields(type(held)):
        if field.name in own or hasattr(held, field.name):
            yield field.name, own[field.name] if field.name in own else getattr(held, field.name)


def _by_index(key: int | str) -> str:
    return f".{key}" if isinstance(key, str) else f"[{key}]"


BUILT_IN: dict[type, Container] = {
    dict: Container(items_of, lambda key: (key,)),
    list: Container(lambda held: enumerate(list.__iter__(held)), "[{}]".format),
    tuple: Container(_tuple_items, _by_index),
    deque: Container(_deque_items, "[{}]".format),
    set: Container(_set_items(set), lambda _: IN_SET),
    frozenset: Container(_set_items(frozenset), lambda _: IN_SET),
}
_DATACLASS = Container(_field_items, ".{}".format)


def container_of(cls: type) -> Container | None:
    """Return how an instance of a built-in container class, or of a class that derives from one, is read."""
    for base, container in BUILT_IN.items():
        if is_subclass(cls, base):
            return container
    return None


def is_container(obj: Any) -> bool:
    """Return whether `map_leaves` looks inside `obj`."""
    cls = type(obj)
    if stand_in_for(cls) is not None:
        return False
    return container_of(cls) is not None or is_dataclass(cls) or _is_mapping(cls)


def _is_mapping(cls: type) -> bool:
    try:
        return issubclass(cls, Mapping)
    except Exception:
        # Its registry asks for the hash of a class, which a metaclass may not have; the bases tell the rest.
        return is_subclass(cls, Mapping)


def is_dataclass(cls: type) -> bool:
    """Return whether the instances of `cls` are containers of their fields; a module is none."""
    if is_subclass(cls, type) or is_subclass(cls, torch.nn.Module):
        return False
    return any("__dataclass_fields__" in class_members(base) for base in mro_of(cls))


def map_leaves(
    function: Callable[[Any], Any],
    tree: Any,
    *,
    leaf_type: type | tuple[type, ...],
    _parents: tuple[int, ...] = (),
) -> Any:
    """Return `tree` with `function` applied to each leaf of `leaf_type`, structure and container types kept.

    A mapping that is no dict, such as a TensorDict, becomes a dict.

    Raises
    ------
    BadRequestError
        If a container holds itself.
    TensornpError
        Of `function`, whose ``entry`` then says for which leaf.
    """
    # By its type: a mock says of itself that it is what it stands for.
    if _is_leaf(tree, leaf_type):
        return function(tree)
    if not is_container(tree):
        return tree
    if id(tree) in _parents or len(_parents) >= MAX_DEPTH:
        depth = "that holds itself" if id(tree) in _parents else f"below {MAX_DEPTH} levels of containers"
        raise BadRequestError(f"a {class_name(type(tree))} {depth} cannot be converted; pass its parts")
    below = (*_parents, id(tree))

    def convert(step: Any, child: Any) -> Any:
        try:
            return map_leaves(function, child, leaf_type=leaf_type, _parents=below)
        except TensornpError as error:
            error.entry = expression_of((None, step)) + error.entry
            raise

    cls = type(tree)
    if _is_mapping(cls):
        return _same_mapping(tree, {key: convert((key,), child) for key, child in tree.items()})
    container = container_of(cls)
    items, step = container or _DATACLASS
    found = list(items(tree))
    children = [convert(step(key), child) for key, child in found]
    if container is None:
        return _same_dataclass(tree, [name for name, _ in found], children)
    if is_subclass(cls, tuple):
        return _same_tuple(tree, children)
    if is_subclass(cls, list):
        return children if cls is list else _same_list(tree, children)
    if is_subclass(cls, deque):
        return _same_deque(tree, children)
    is_unchanged = all(child is before for child, (_, before) in zip(children, found, strict=True))
    return tree if is_unchanged else _same_set(tree, children)


def _is_leaf(obj: Any, leaf_type: type | tuple[type, ...]) -> bool:
    if issubclass(type(obj), leaf_type):
        return True
    takes_tensors = leaf_type is torch.Tensor or (isinstance(leaf_type, tuple) and torch.Tensor in leaf_type)
    return takes_tensors and stand_in_of(obj) is not None


def _same_list(original: list[Any], children: list[Any]) -> Any:
    other = copy.copy(original)
    list.__setitem__(other, slice(None), children)
    return other


def _same_tuple(original: tuple[Any, ...], children: list[Any]) -> Any:
    kind: Any = type(original)
    if hasattr(kind, "_make"):
        return kind._make(children)
    try:
        # Past the constructor of a subclass, which may ask for other arguments.
        other: Any = tuple.__new__(cast(type[tuple[Any, ...]], kind), children)
    except TypeError:
        # Not for torch.Size and torch.return_types, which are written in C.
        return kind(children)
    if hasattr(original, "__dict__"):
        vars(other).update(vars(original))
    return other


def _same_deque(original: deque[Any], children: list[Any]) -> Any:
    try:
        other = copy.copy(original)
        deque.clear(other)
    except Exception:
        # A constructor of its own, that wants other arguments.
        other = deque(maxlen=original.maxlen)
    deque.extend(other, children)
    return other


def _same_set(original: Any, children: list[Any]) -> Any:
    base = set if is_subclass(type(original), set) else frozenset
    try:
        others = base(children)
    except TypeError as error:
        raise BadRequestError("a set cannot hold arrays, which have no hash; pass a list of its members") from error
    try:
        return others if type(original) is base else type(original)(others)
    except Exception:
        # A constructor of its own, that wants other arguments.
        return others


def _same_mapping(original: Any, items: dict[Any, Any]) -> Any:
    if type(original) is dict or not is_subclass(type(original), dict):
        return items
    try:
        other = copy.copy(original)
        for key, item in items.items():
            other[key] = item
    except Exception:
        # A class that takes tensors only, or none at all after it was made.
        return items
    return other


def _same_dataclass(original: Any, names: list[str], values: list[Any]) -> Any:
    """Return a copy with other fields; nothing of the class runs, which may check that they are tensors."""
    other = copy.copy(original)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(other, name, value)
    return other


_LEAVES = PLAIN_CLASSES | {id(torch.Tensor), id(torch.nn.Parameter)}
"""Classes whose instances hold nothing, by identity."""


def leaves(tree: Any, _path: Path | None = None, _parents: tuple[int, ...] = ()) -> Iterator[tuple[Path | None, Any]]:
    """Yield each leaf with the path to it, depth first, and lightly: `expression_of` it is what reaches the leaf.

    A container that holds itself is yielded as a leaf the second time. Of a mapping of another class than `dict`, the
    values are taken from the dictionary in which it keeps them, and it is a leaf without one: it may load each, or
    compute it.
    """
    children = None if id(tree) in _parents or len(_parents) >= MAX_DEPTH else _children(tree)
    if children is None:
        yield _path, tree
        return
    below = (*_parents, id(tree))
    is_empty = True
    for step, child in children:
        is_empty = False
        if id(type(child)) in _LEAVES:
            yield (_path, step), child
        else:
            yield from leaves(child, (_path, step), below)
    if is_empty:
        # An empty container is a leaf too, so that who counts leaves counts it.
        yield _path, tree


def _children(tree: Any) -> Iterator[tuple[Any, Any]] | None:
    """Return what a container holds, each with the step to it; None for what is no container, or lets nobody see."""
    try:
        if not is_container(tree):
            return None
        if is_subclass(type(tree), dict):
            return (((key,), child) for key, child in tree.items())
        container = container_of(type(tree)) or (_DATACLASS if is_dataclass(type(tree)) else None)
        if container is not None:
            return ((container.step(key), child) for key, child in container.items(tree))
        kept = _kept_items(tree)
        return (((key,), child) for key, child in kept) if kept is not None else None
    except Exception:
        return None


def _kept_items(mapping: Any) -> list[tuple[Any, Any]] | None:
    """Return the items of the dictionary in which a mapping keeps its own, as a UserDict and a TensorDict do, if any.

    It is an attribute of the mapping, and has the very keys that the mapping names.
    """
    for _, held in own_attributes(mapping):
        if is_subclass(type(held), dict):
            kept = list(items_of(held))
            keys = list(islice(mapping.keys(), len(kept) + 1))
            if len(keys) == len(kept) and all(key is own for key, (own, _) in zip(keys, kept, strict=True)):
                return kept
    return None


def walk(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it from `tree`: ``["a"][0].values``, depth first."""
    return ((expression_of(path), leaf) for path, leaf in leaves(tree))
