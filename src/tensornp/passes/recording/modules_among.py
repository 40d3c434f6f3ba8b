"""The modules among some objects, and in what these hold: items, attributes, what a function closes over."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch

from tensornp.core.lowlevel.attributes import has_attributes
from tensornp.core.namespace.members import is_foreign

_MOST_OBJECTS, _MOST_DEPTH, _MOST_ITEMS = 10_000, 3, 1_000
_OWN = frozenset(vars(torch.nn.Module()))
"""What every module holds: of these, its own modules are looked at."""
_OPAQUE = (types.ModuleType, type, torch.Tensor)
_KINDS: WeakKeyDictionary[type, str] = WeakKeyDictionary()
_KINDS_OF_BASES = (
    (torch.nn.Module, "module"),
    (dict, "dict"),
    (list, "row"),
    (tuple, "row"),
    (types.FunctionType, "function"),
    (types.MethodType, "method"),
)


def modules_among(objects: Iterable[Any]) -> Iterator[tuple[torch.nn.Module, dict[str, Any]]]:
    """Yield the modules among objects, and in what these hold, each with its attributes; nothing of a class runs."""
    # By number, since a metaclass may compute what hashes a class.
    kinds, seen, num_others = dict[int, str](), set[int](), 0
    waiting: list[tuple[Any, str, int]] = []

    def await_all(children: Sequence[Any], depth: int) -> int:
        for one in children:
            cls = type(one)
            kind = kinds.get(id(cls)) or kinds.setdefault(id(cls), _known_kind_of(cls))
            if kind != "opaque":
                waiting.append((one, kind, depth))
        return len(children)

    await_all([*objects], 0)
    for obj, kind, depth in waiting:
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        if kind == "module":
            held = getattr(obj, "__dict__", None) or {}
            yield obj, held
            await_all([child for _, child in items_of(held.get("_modules"))], depth)
        if depth < _MOST_DEPTH and num_others < _MOST_OBJECTS:
            num_others += await_all([*itertools.islice(_held_by(obj, kind), _MOST_ITEMS)], depth + 1)


def _held_by(obj: Any, kind: str) -> Iterable[Any]:
    if kind == "module":
        return [one for name, one in items_of(getattr(obj, "__dict__", None)) if name not in _OWN]
    if kind == "dict":
        return dict.values(obj)
    if kind == "row":
        return list.__iter__(obj) if issubclass(type(obj), list) else tuple.__iter__(obj)
    if kind == "method":
        return (obj.__self__,)
    if kind == "function":
        return _contents_of(obj.__closure__ or ())
    return (getattr(obj, "__dict__", None) or {}).values()


def _contents_of(cells: Iterable[types.CellType]) -> Iterator[Any]:
    for cell in cells:
        # That of a name which is not bound yet is empty.
        with suppress(ValueError):
            yield cell.cell_contents


def items_of(table: Any) -> Sequence[tuple[str, Any]]:
    """Return the items of what should be a dictionary, as they are now: a thread may add to it meanwhile."""
    return [*dict.items(table)] if table and issubclass(type(table), dict) else ()


def _known_kind_of(cls: type) -> str:
    return _KINDS.get(cls) or _KINDS.setdefault(cls, _kind_of(cls))


def _kind_of(cls: type) -> str:
    if any(issubclass(cls, base) for base in _OPAQUE):
        return "opaque"
    if kind := next((kind for base, kind in _KINDS_OF_BASES if issubclass(cls, base)), ""):
        return kind
    return "holder" if has_attributes(cls) and not is_foreign(cls) else "opaque"
