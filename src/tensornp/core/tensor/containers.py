"""The one walk of containers: what is one, what it holds, its leaves by name, and the same tree with other leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import torch

from tensornp.core.lowlevel.attributes import (
    class_members,
    class_name,
    copied,
    dict_of,
    in_chunks,
    is_subclass,
    module_name,
    mro_of,
    own_attributes,
    set_own_attribute,
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
    base = OrderedDict if is_subclass(type(held), OrderedDict) else dict
    return in_chunks(iter(base.items(held)))


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
    """Yield the fields that lie in the object itself: a property would be computed."""
    own = dict(own_attributes(held))
    return ((field.name, own[field.name]) for field in dataclasses.fields(type(held)) if field.name in own)


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
        before = dict(tree.items())
        after = {key: convert((key,), child) for key, child in before.items()}
        return tree if cls is not dict and _is_same(before.values(), after.values()) else _same_mapping(tree, after)
    container = container_of(cls)
    items, step = container or _DATACLASS
    found = list(items(tree))
    children = [convert(step(key), child) for key, child in found]
    if container is None:
        _check_computed(tree, convert)
    if cls not in (list, tuple) and _is_same([child for _, child in found], children):
        return tree
    if container is None:
        return _same_dataclass(tree, [name for name, _ in found], children)
    for base, made_of in _SAME.items():
        if is_subclass(cls, base):
            return made_of(tree, children)
    raise AssertionError(cls)


def _is_same(before: Iterable[Any], after: Iterable[Any]) -> bool:
    return all(child is old for child, old in zip(after, before, strict=True))


def _is_leaf(obj: Any, leaf_type: type | tuple[type, ...]) -> bool:
    if issubclass(type(obj), leaf_type):
        return True
    takes_tensors = leaf_type is torch.Tensor or (isinstance(leaf_type, tuple) and torch.Tensor in leaf_type)
    return takes_tensors and stand_in_of(obj) is not None


def _copy_of(original: Any) -> Any:
    """Return a shallow copy, which shares nothing that is about to be written; None where the class makes none."""
    try:
        other = copy.copy(original)
    except Exception:
        return None
    is_apart = other is not original and type(other) is type(original)
    attributes = dict_of(other)
    return other if is_apart and (attributes is None or attributes is not dict_of(original)) else None


def _same_list(original: list[Any], children: list[Any]) -> Any:
    other = _copy_of(original) if type(original) is not list else None
    if other is None:
        return children
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
    other = _copy_of(original)
    if other is None:
        return deque(children, original.maxlen)
    deque.clear(other)
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


_SAME: dict[type, Callable[[Any, list[Any]], Any]] = {
    list: _same_list, tuple: _same_tuple, deque: _same_deque, set: _same_set, frozenset: _same_set,
}  # fmt: skip


def _same_mapping(original: Any, items: dict[Any, Any]) -> Any:
    is_own = type(original) is not dict and is_subclass(type(original), dict)
    other = _copy_of(original) if is_own else None
    if other is None:
        return items
    try:
        for key, item in items.items():
            other[key] = item
        is_kept = all(dict.__getitem__(other, key) is item for key, item in items.items())
    except Exception:
        # A class that takes tensors only.
        return items
    # One that makes tensors of what it is given would hold no array.
    return other if is_kept else items


def _same_dataclass(original: Any, names: list[str], values: list[Any]) -> Any:
    """Return a copy with other fields; nothing of the class runs, which may check that they are tensors."""
    other = _copy_of(original)
    if other is None:
        raise BadRequestError(f"a {class_name(type(original))} cannot be copied; convert its fields")
    for name, value in zip(names, values, strict=True):
        set_own_attribute(other, name, value)
    return other


def _check_computed(tree: Any, convert: Callable[[Any, Any], Any]) -> None:
    """Refuse a dataclass of which a property gives what would have to be converted: it cannot be set in a copy."""
    own = dict(own_attributes(tree))
    for field in dataclasses.fields(type(tree)):
        value = getattr(tree, field.name, None) if field.name not in own else None
        if value is not None and convert(f".{field.name}", value) is not value:
            raise BadRequestError(
                f"{field.name} of {class_name(type(tree))} is computed by a property, which cannot be replaced; "
                f"convert .{field.name}"
            )


LEAVES = PLAIN_CLASSES | {id(torch.Tensor), id(torch.nn.Parameter)}
"""Classes whose instances hold nothing, by identity."""


def leaves(tree: Any, _path: Path | None = None, _parents: tuple[int, ...] = ()) -> Iterator[tuple[Path | None, Any]]:
    """Yield each leaf with the path to it, depth first, and lightly: `expression_of` it is what reaches the leaf.

    Nothing of the user's runs. A container that holds itself is yielded as a leaf the second time, and so is one below
    `MAX_DEPTH` levels. Of a UserDict or a TensorDict the values are taken from the dictionary in which it keeps them;
    another mapping than `dict` is a leaf, since it may load each value, or compute it.
    """
    children = None if id(tree) in _parents or len(_parents) >= MAX_DEPTH else _children(tree)
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
            yield from leaves(child, (_path, step), below)
    if is_empty:
        # An empty container is a leaf too, so that who counts leaves counts it.
        yield _path, tree


def _children(tree: Any) -> Iterator[tuple[Any, Any]] | None:
    """Return what a container holds, each with the step to it; None for what is no container, or lets nobody see."""
    try:
        if not is_container(tree):
            return None
        container = container_of(type(tree)) or (_DATACLASS if is_dataclass(type(tree)) else None)
        if container is not None:
            return ((container.step(key), child) for key, child in container.items(tree))
        kept = _kept_items(tree)
        return (((key,), child) for key, child in kept) if kept is not None else None
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


def _kept_items(mapping: Any) -> Iterator[tuple[Any, Any]] | None:
    """Return the items of the dictionary in which a mapping keeps its own; None where its class may tell others."""
    for base in mro_of(type(mapping)):
        attribute = _KEPT_IN.get((module_name(base).partition(".")[0], class_name(base)))
        if attribute is not None:
            kept: Any = next((held for name, held in own_attributes(mapping) if name == attribute), None)
            return items_of(kept) if is_subclass(type(kept), dict) else None
        if any(name in class_members(base) for name in _OVERRIDES):
            return None
    return None


def walk(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it from `tree`: ``["a"][0].values``, depth first."""
    return ((expression_of(path), leaf) for path, leaf in leaves(tree))
