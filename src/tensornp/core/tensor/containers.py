"""Trees of dicts, lists, tuples and dataclasses: their leaves by name, and the same tree with other leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import torch

from tensornp.core.lowlevel.attributes import class_members, class_name, is_subclass, mro_of
from tensornp.core.lowlevel.legible import legible
from tensornp.core.tensor.stand_ins import stand_in_for, stand_in_of
from tensornp.errors import BadRequestError, TensornpError

MAX_DEPTH = 100
"""Levels that are followed; a container that holds itself is found before that."""

MAX_KEY = 120
"""Characters of a dictionary key that are shown."""


def is_container(obj: Any) -> bool:
    """Return whether `map_leaves` looks inside `obj`."""
    return _is_followed(obj) or _is_mapping(type(obj))


def _is_mapping(cls: type) -> bool:
    try:
        return issubclass(cls, Mapping)
    except Exception:
        # Its registry asks for the hash of a class, which a metaclass may not have; the bases tell the rest.
        return is_subclass(cls, Mapping)


def _is_dataclass(cls: type) -> bool:
    return not is_subclass(cls, type) and any("__dataclass_fields__" in class_members(base) for base in mro_of(cls))


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
            error.entry = name_at((None, step)) + error.entry
            raise

    if _is_mapping(type(tree)):
        return _same_mapping(tree, {key: convert((key,), child) for key, child in tree.items()})
    children = [convert(step, child) for step, child in _children(tree)]
    if not _is_sequence(type(tree)):
        return _same_dataclass(tree, [name for name, _ in _fields(tree)], children)
    kind = type(tree)
    if hasattr(kind, "_make"):
        return kind._make(children)
    if is_subclass(kind, list):
        return children if kind is list else _same_list(tree, children)
    try:
        # Past the constructor of a subclass, which may ask for other arguments.
        other: Any = tuple.__new__(cast(type[tuple[Any, ...]], kind), children)
    except TypeError:
        # Not for torch.Size and torch.return_types, which are written in C.
        return kind(children)
    if hasattr(tree, "__dict__"):
        vars(other).update(vars(tree))
    return other


def _is_leaf(obj: Any, leaf_type: type | tuple[type, ...]) -> bool:
    if issubclass(type(obj), leaf_type):
        return True
    takes_tensors = leaf_type is torch.Tensor or (isinstance(leaf_type, tuple) and torch.Tensor in leaf_type)
    return takes_tensors and stand_in_of(obj) is not None


def _same_list(original: list[Any], children: list[Any]) -> Any:
    other = copy.copy(original)
    list.__setitem__(other, slice(None), children)
    return other


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


def _fields(tree: Any) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass that are set, by name."""
    return [(field.name, getattr(tree, field.name)) for field in dataclasses.fields(tree) if hasattr(tree, field.name)]


def _same_dataclass(original: Any, names: list[str], values: list[Any]) -> Any:
    """Return a copy with other fields; nothing of the class runs, which may check that they are tensors."""
    other = copy.copy(original)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(other, name, value)
    return other


def is_plain_value(obj: Any) -> bool:
    """Return whether `obj` is a number, a text, bytes or None, and of no other class: its own repr can be called."""
    return id(type(obj)) in _PLAIN


def key_text(key: Any) -> str:
    """Return the repr of a plain key, shortened; other keys by their type alone, since a tensor's repr can crash."""
    if is_plain_value(key):
        if type(key) is int and key.bit_length() > 1000:
            return f"<int of {key.bit_length():,} bits>"
        text = repr(key[:MAX_KEY] if isinstance(key, (str, bytes)) else key)
        return text if len(text) <= MAX_KEY else text[: MAX_KEY - 1] + "…"
    return f"<{class_name(type(key))}>"


Way = tuple[Any, Any]
"""How a leaf is reached: the way to what holds it, or None, and the last step: its text, or a key alone in a tuple."""


def leaves(tree: Any, _way: Way | None = None, _parents: tuple[int, ...] = ()) -> Iterator[tuple[Way | None, Any]]:
    """Yield each leaf with the way to it, which `name_at` turns into an expression: depth first, and lightly.

    A container that holds itself is yielded as a leaf the second time.
    """
    if not _is_followed(tree) or id(tree) in _parents or len(_parents) >= MAX_DEPTH:
        yield _way, tree
        return
    try:
        children = _children(tree)
    except Exception:
        # Its class does not let its items or fields be seen.
        yield _way, tree
        return
    below = (*_parents, id(tree))
    is_empty = True
    for step, child in children:
        is_empty = False
        if id(type(child)) in _LEAVES:
            yield (_way, step), child
        else:
            yield from leaves(child, (_way, step), below)
    if is_empty:
        # An empty container is a leaf too, so that who counts leaves counts it.
        yield _way, tree


def _is_followed(tree: Any) -> bool:
    cls = type(tree)
    if stand_in_for(cls) is not None:
        return False
    return is_subclass(cls, dict) or _is_sequence(cls) or _is_dataclass(cls)


def _is_sequence(cls: type) -> bool:
    return is_subclass(cls, list) or is_subclass(cls, tuple)


_PLAIN = frozenset(map(id, (int, float, complex, bool, str, bytes, type(None))))
_LEAVES = _PLAIN | {id(torch.Tensor), id(torch.nn.Parameter)}
"""Classes whose instances hold nothing, by identity: a metaclass of the user's may compute hashes."""


def _children(tree: Any) -> Iterator[tuple[Any, Any]]:
    if is_subclass(type(tree), dict):
        return (((key,), child) for key, child in tree.items())
    if not _is_sequence(type(tree)):
        return ((f".{name}", child) for name, child in _fields(tree))
    # torch.return_types name their fields for pattern matching only.
    kind = type(tree)
    fields: tuple[str, ...] = getattr(kind, "_fields", None) or getattr(kind, "__match_args__", None) or ()
    steps = [f".{legible(str(field))}" for field in fields]
    return ((steps[i] if i < len(steps) else f"[{i}]", child) for i, child in enumerate(tree))


def name_at(way: Way | None) -> str:
    """Return the expression that goes a `way` from the container: ``["a"][0].values``."""
    steps = []
    while way is not None:
        way, step = way
        steps.append(f"[{key_text(step[0])}]" if type(step) is tuple else step)
    return "".join(reversed(steps))


def walk(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it from `tree`: ``["a"][0].values``, depth first."""
    return ((name_at(way), leaf) for way, leaf in leaves(tree))
