"""Everything that a table says of a module: its parameters and buffers by name, gathered once for all renderers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_name, is_subclass, is_tensor
from tensornp.core.namespace.members import in_module
from tensornp.core.summary.container import MAX_LEAVES, ContainerSummary, Leaf, summarize_leaves
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.paths import Path

MAX_DEPTH = 100
"""Submodules in submodules that are followed."""


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """A module as a table shows it; `num_parameters` counts elements, those of tied parameters once.

    `text` is what the module prints itself, empty where that raises.
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
    found = list(islice(_tensors_of(module), MAX_LEAVES + 1))
    parameters = {id(leaf): leaf for _, leaf in found if is_subclass(type(leaf), torch.nn.Parameter)}
    table = summarize_leaves(found[:MAX_LEAVES], options)
    named = tuple(replace(row, name=row.name.removeprefix(".")) for row in table.rows)
    table = replace(table, type_name=class_name(type(module)), rows=named, is_complete=len(found) <= MAX_LEAVES)
    return table, sum(map(_numel, parameters.values()))


def _numel(parameter: torch.Tensor) -> int:
    try:
        return int(Bare(parameter).numel())
    except Exception:
        # One without a shape yet.
        return 0


def _tensors_of(
    module: Any, path: Path | None = None, seen: frozenset[int] = frozenset(), depth: int = 0
) -> Iterator[Leaf]:
    """Yield parameters and buffers with the paths to them, depth first; a module that holds itself is left out."""
    below = seen | {id(module)}
    try:
        members = list(in_module(module))
    except Exception:
        return
    for step, child, kind in members:
        if kind in ("parameter", "buffer") and is_tensor(child):
            yield (path, step), child
        elif is_subclass(type(child), torch.nn.Module) and id(child) not in below and depth < MAX_DEPTH:
            yield from _tensors_of(child, (path, step), below, depth + 1)
