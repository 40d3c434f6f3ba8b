"""What a generator of a module's parameters or buffers is about to yield, told without taking anything out of it."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from types import GeneratorType
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_members, dict_of, mro_of
from tensornp.core.summary.container import MAX_LEAVES, Leaf
from tensornp.core.summary.module import ModuleSummary, table_of
from tensornp.core.summary.options import DisplayOptions

_TABLES = {
    id(method.__code__): table
    for method, table in (
        (torch.nn.Module.parameters, "_parameters"),
        (torch.nn.Module.named_parameters, "_parameters"),
        (torch.nn.Module.buffers, "_buffers"),
        (torch.nn.Module.named_buffers, "_buffers"),
    )
}
"""From which table of each module these methods yield, by the identity of their code."""
_METHODS = ("named_parameters", "named_buffers", "named_modules", "_named_members")
"""What they are made of: of a class that has one of its own, nobody knows what will come."""


class _UnknownError(Exception):
    """Nobody can tell what will be yielded."""


def leaves_of(obj: Any) -> list[Leaf] | None:
    """Return what ``module.parameters()``, or a method like it, will yield, by the names that it gives.

    None of another object, of a generator that has begun, and where only running it would tell.
    """
    if type(obj) is not GeneratorType or id(obj.gi_code) not in _TABLES:
        return None
    frame = obj.gi_frame
    if frame is None or inspect.getgeneratorstate(obj) != inspect.GEN_CREATED:
        return None
    # They are what it was called with, since nothing of it has run.
    arguments = frame.f_locals
    try:
        module, recurse = arguments["self"], arguments["recurse"]
        prefix, is_once = arguments.get("prefix", ""), arguments.get("remove_duplicate", True)
        modules = _modules(module, prefix, is_once=is_once, seen=set()) if recurse else iter([(prefix, module)])
        return list(islice(_tensors(modules, _TABLES[id(obj.gi_code)], is_once=is_once), MAX_LEAVES + 1))
    except (_UnknownError, KeyError, RecursionError):
        return None


@modes.unnoticed
def summarize_generator(leaves: list[Leaf], options: DisplayOptions) -> ModuleSummary:
    """Return the summary of what a generator will yield."""
    return ModuleSummary(*table_of("generator", leaves, options), "")


def _modules(module: Any, prefix: str, *, is_once: bool, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield a module and those below it, in the order of `torch.nn.Module.named_modules`."""
    if id(module) in seen:
        return
    if is_once:
        seen.add(id(module))
    yield prefix, module
    for name, child in _table(module, "_modules"):
        yield from _modules(child, f"{prefix}.{name}" if prefix else name, is_once=is_once, seen=seen)


def _tensors(modules: Iterator[tuple[str, Any]], table: str, *, is_once: bool) -> Iterator[Leaf]:
    seen: set[int] = set()
    for prefix, module in modules:
        for name, tensor in _table(module, table):
            if id(tensor) not in seen:
                if is_once:
                    seen.add(id(tensor))
                yield (None, f"{prefix}.{name}" if prefix else name), tensor


def _table(module: Any, name: str) -> list[tuple[str, Any]]:
    """Return what a module has in one of its tables; raise where its class decides itself what it tells of them."""
    table: Any = (dict_of(module) or {}).get(name)
    is_plain = type(table) is dict or type(table) is OrderedDict
    if not is_plain or _has_own_methods(type(module)):
        raise _UnknownError
    return [(key, value) for key, value in list(table.items()) if value is not None]


def _has_own_methods(cls: type) -> bool:
    for base in mro_of(cls):
        if base is torch.nn.Module:
            return False
        if any(method in class_members(base) for method in _METHODS):
            return True
    return True
