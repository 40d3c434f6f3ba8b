"""Everything that a table says of a module: its parameters and buffers by name, gathered once for all renderers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_name, is_subclass, is_tensor
from tensornp.core.namespace.members import registered
from tensornp.core.summary.container import MAX_LEAVES, ContainerSummary, Leaf, held_elsewhere, summarize_leaves
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.paths import Path

_Level = tuple[Iterator[Any], Path | None, frozenset[int]]
"""What is left of the members of a module, the path to it, and the modules through which that goes."""


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """A module as a table shows it; `num_parameters` counts elements, those of tied parameters once.

    `num_elsewhere` of them are of parameters that are spread over ranks, and not held by this one.

    `text` is what the module prints itself, empty where that raises, or where the rows are those of a generator.
    """

    table: ContainerSummary
    num_parameters: int
    num_elsewhere: int
    text: str


def is_module(obj: Any) -> bool:
    """Return whether `obj` is a module that holds a parameter or a buffer; nothing of the user's runs."""
    return is_subclass(type(obj), torch.nn.Module) and next(_tensors_of(obj), None) is not None


def summarize_module(module: torch.nn.Module, options: DisplayOptions) -> ModuleSummary:
    """Return the summary of a module; only what it prints itself runs code of the user's."""
    table, num_parameters, num_elsewhere = _summarize(module, options)
    try:
        text = repr(module)
    except Exception:
        text = ""
    return ModuleSummary(table, num_parameters, num_elsewhere, text)


@modes.unnoticed
def _summarize(module: torch.nn.Module, options: DisplayOptions) -> tuple[ContainerSummary, int, int]:
    found = list(islice(_tensors_of(module), MAX_LEAVES + 1))
    # As a module has them: those of a loaded script are tensors of no class of their own.
    parameters = [child for _, child, kind in found if kind == "parameter"]
    return table_of(class_name(type(module)), [(path, child) for path, child, _ in found], options, parameters)


def table_of(
    type_name: str, found: list[Leaf], options: DisplayOptions, known: Sequence[Any] | None = None
) -> tuple[ContainerSummary, int, int]:
    """Return the table of the first `MAX_LEAVES` that were found, and the elements of parameters, all and elsewhere.

    `known` are those of them that are parameters; None where their classes tell.
    """
    shown = found[:MAX_LEAVES]
    among = [leaf for _, leaf in shown if _is_parameter(leaf)] if known is None else known[:MAX_LEAVES]
    parameters = {id(leaf): leaf for leaf in among}
    table = summarize_leaves(shown, options)
    named = tuple(replace(row, name=row.name.removeprefix(".")) for row in table.rows)
    table = replace(table, type_name=type_name, rows=named, is_complete=len(found) <= MAX_LEAVES)
    return table, sum(map(_numel, parameters.values())), sum(held_elsewhere(one)[0] for one in parameters.values())


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
        return int(Bare(parameter).numel())
    except Exception:
        # One without a shape yet.
        return 0


def _tensors_of(module: Any) -> Iterator[tuple[Path, Any, str]]:
    """Yield parameters and buffers, the paths to them and their kinds, depth first; but no module that holds itself."""
    stack = [_members(module, None, frozenset())]
    while stack:
        members, path, seen = stack[-1]
        step, child, kind = next(members, (None, None, None))
        if kind is None:
            stack.pop()
        elif kind in ("parameter", "buffer") and is_tensor(child):
            yield (path, step), child, kind
        elif is_subclass(type(child), torch.nn.Module) and id(child) not in seen:
            stack.append(_members(child, (path, step), seen))


def _members(module: Any, path: Path | None, above: frozenset[int]) -> _Level:
    """Return the level of a module that lies at `path`, below modules of these identities."""
    try:
        members = list(registered(module))
    except Exception:
        members = []
    return iter(members), path, above | {id(module)}
