"""What a generator of a module's parameters or buffers is about to yield, told without taking anything out of it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from inspect import GEN_CREATED, getgeneratorstate
from itertools import islice
from types import GeneratorType
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_members, dict_of, is_subclass, mro_of
from tensornp.core.lowlevel.partitioned import placeholder_of
from tensornp.core.summary.container import MAX_LEAVES, ContainerSummary, Leaf, held_elsewhere, summarize_leaves
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.info import inspect

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
    if frame is None or getgeneratorstate(obj) != GEN_CREATED:
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


@dataclass(frozen=True, slots=True)
class GeneratorSummary:
    """What a table shows of a generator; `num_parameters` counts elements, those of tied parameters once.

    `num_elsewhere` of them are of parameters that are spread over ranks, and not held by this one.
    """

    table: ContainerSummary
    num_parameters: int
    num_elsewhere: int


@modes.unnoticed
def summarize_generator(leaves: list[Leaf], options: DisplayOptions) -> GeneratorSummary:
    """Return the summary of the first `MAX_LEAVES` that a generator will yield."""
    shown = leaves[:MAX_LEAVES]
    parameters = {id(leaf): leaf for _, leaf in shown if _is_parameter(leaf)}
    table = summarize_leaves(shown, options)
    named = tuple(replace(row, name=row.name.removeprefix(".")) for row in table.rows)
    table = replace(table, type_name="generator", rows=named, is_complete=len(leaves) <= MAX_LEAVES)
    elsewhere = sum(held_elsewhere(one)[0] for one in parameters.values())
    return GeneratorSummary(table, sum(map(_numel, parameters.values())), elsewhere)


def _is_parameter(tensor: Any) -> bool:
    """Return whether a tensor is a parameter; one of a class of its own, as a sharded one, need not be a subclass."""
    try:
        return is_subclass(type(tensor), torch.nn.Parameter) or (
            type(tensor) is not torch.Tensor and inspect(tensor).is_parameter
        )
    except Exception:
        # Its row says what is wrong.
        return False


def _numel(parameter: torch.Tensor) -> int:
    try:
        placeholder = placeholder_of(parameter)
        return int(Bare(parameter).numel()) if placeholder is None else math.prod(placeholder.shape)
    except Exception:
        # One without a shape yet.
        return 0


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
