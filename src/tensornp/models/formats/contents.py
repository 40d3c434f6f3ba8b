"""The contents of a file or a folder of weights, and their problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.models.names.quoted import shown_name

if TYPE_CHECKING:
    from tensornp.models.entries.entry import WeightEntry
    from tensornp.models.optimizers import SavedOptimizer


class Beside(dict[str, Any]):
    """Values next to the weights of a container, by name; a comparison compares them."""


class Contents(NamedTuple):
    """Weights, metadata, problems, and optimizers with their states."""

    entries: list[WeightEntry]
    metadata: Mapping[str, Any]
    problems: list[str]
    optimizers: Sequence[SavedOptimizer] = ()


def problem_of_part(name: str, problem: str) -> str:
    """Return a problem of the same class with the name of its file."""
    retold: Callable[[str], str] = getattr(problem, "retold", type(problem))
    return retold(f"{shown_name(name)}: {problem}")


def problems_of(entries: Iterable[WeightEntry]) -> list[str]:
    """Return a sentence for each reason why weights have no values, with the first of its weights."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.problem:
            names.setdefault(entry.problem, []).append(entry.name)
    return [
        f"{shown_name(some[0])}{f' and {len(some) - 1:,} more' if len(some) > 1 else ''}: {problem}"
        for problem, some in names.items()
    ]
