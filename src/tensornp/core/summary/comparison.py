"""Gather the content of the comparison of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.compare.compare import Comparison, compare
from tensornp.core.values.pictures.planes import PlaneMap, difference_map
from tensornp.errors import TensornpError


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """A comparison with the names of the two, and a heat map of their difference if there is one."""

    names: tuple[str, str]
    comparison: Comparison
    picture: PlaneMap | None = None


def summary_of_comparison(found: Comparison, options: DisplayOptions) -> ComparisonSummary:
    """Return a comparison as a card shows it, without the two tensors."""
    return ComparisonSummary(("the first", "the second"), found)


@modes.outside_modes
def summarize_comparison(a: Any, b: Any, options: DisplayOptions, names: tuple[str, str]) -> ComparisonSummary:
    """Compare two tensors or arrays; raise as `compare` does."""
    comparison = compare(a, b)
    if not options.has_pictures or not comparison._num_changed:
        return ComparisonSummary(names, comparison)
    try:
        picture = difference_map(a, b)
    except TensornpError:
        picture = None
    return ComparisonSummary(names, comparison, picture)
