"""Everything that a table says of a module: its parameters and buffers by name, gathered once for all renderers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from types import GeneratorType
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_name, is_subclass, is_tensor
from tensornp.core.namespace.members import in_module
from tensornp.core.summary.container import MAX_LEAVES, ContainerSummary, Leaf, summarize_leaves
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.paths import Kind, Path

MAX_DEPTH = 100
"""Submodules in submodules that are followed."""


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """A module as a table shows it; `num_parameters` counts elements, those of tied parameters once.

    `text` is what the module prints itself, empty where that raises, or where a generator yields the table's rows.
    """

    table: ContainerSummary
    num_parameters: int
    text: str


def is_module(obj: Any) -> bool:
    """Return whether `obj` is a module that holds a parameter or a buffer; nothing of the user's runs."""
    return is_subclass(type(obj), torch.nn.Module) and next(_tensors_of(obj), None) is not None


def summarize_module(module: torch.nn.Module, options: DisplayOptions) -> ModuleSummary:
    """Return the summary of a module; only what it prints itself runs code of the user's."""
    table, num_parameters = _summarize(module, options)
    try:
        text = repr(module)
    except Exception:
        text = ""
    return ModuleSummary(table, num_parameters, text)


@modes.unnoticed
def _summarize(module: torch.nn.Module, options: DisplayOptions) -> tuple[ContainerSummary, int]:
    return _table(class_name(type(module)), list(islice(_tensors_of(module), MAX_LEAVES + 1)), options)


def _table(type_name: str, found: list[Leaf], options: DisplayOptions) -> tuple[ContainerSummary, int]:
    """Return the table of what was found, and how many elements its parameters have."""
    parameters = {id(leaf): leaf for _, leaf in found if is_subclass(type(leaf), torch.nn.Parameter)}
    table = summarize_leaves(found[:MAX_LEAVES], options)
    named = tuple(replace(row, name=row.name.removeprefix(".")) for row in table.rows)
    table = replace(table, type_name=type_name, rows=named, is_complete=len(found) <= MAX_LEAVES)
    return table, sum(map(_numel, parameters.values()))


def is_generator(obj: Any) -> bool:
    """Return whether `obj` is what ``module.parameters()`` or a method like it has returned, before its first item."""
    if type(obj) is not GeneratorType or id(obj.gi_code) not in _GENERATORS:
        return False
    return inspect.getgeneratorstate(obj) == inspect.GEN_CREATED and is_module(_arguments(obj)["self"])


@modes.unnoticed
def summarize_generator(generator: GeneratorType[Any, Any, Any], options: DisplayOptions) -> ModuleSummary:
    """Return the summary of what a generator of a module's will yield; nothing is taken out of it."""
    arguments, kind = _arguments(generator), _GENERATORS[id(generator.gi_code)]
    found: dict[int, Leaf] = {}
    for path, leaf in islice(_tensors_of(arguments["self"], kinds=(kind,)), MAX_LEAVES + 1):
        is_below = path is not None and path[0] is not None and not arguments["recurse"]
        if not is_below:
            # One that is tied has the first of its names.
            found.setdefault(id(leaf), (path, leaf))
    table, num_parameters = _table("generator", list(found.values()), options)
    return ModuleSummary(table, num_parameters, "")


def _arguments(generator: GeneratorType[Any, Any, Any]) -> dict[str, Any]:
    """Return the arguments with which a generator that has not begun was called."""
    frame: Any = generator.gi_frame
    return dict(frame.f_locals)


_GENERATORS = {
    id(method.__code__): kind
    for method, kind in (
        (torch.nn.Module.parameters, "parameter"),
        (torch.nn.Module.named_parameters, "parameter"),
        (torch.nn.Module.buffers, "buffer"),
        (torch.nn.Module.named_buffers, "buffer"),
    )
}
"""What each of these methods yields, by the identity of its code."""


def _numel(parameter: torch.Tensor) -> int:
    try:
        return int(Bare(parameter).numel())
    except Exception:
        # One without a shape yet.
        return 0


def _tensors_of(
    module: Any,
    path: Path | None = None,
    seen: frozenset[int] = frozenset(),
    depth: int = 0,
    kinds: tuple[Kind, ...] = ("parameter", "buffer"),
) -> Iterator[Leaf]:
    """Yield parameters and buffers with the paths to them, depth first; a module that holds itself is left out."""
    below = seen | {id(module)}
    try:
        members = list(in_module(module))
    except Exception:
        return
    for step, child, kind in members:
        if kind in kinds and is_tensor(child):
            yield (path, step), child
        elif is_subclass(type(child), torch.nn.Module) and id(child) not in below and depth < MAX_DEPTH:
            yield from _tensors_of(child, (path, step), below, depth + 1, kinds)
