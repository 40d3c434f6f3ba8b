"""What a scan has found, of all weights below a branch: how many stand out, and between what extremes figures lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tensornp.models.entries.counter import is_counter
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.outline.columns import figure_columns
from tensornp.models.outline.outline import Outline

_Kind = tuple[int, str]
_DECADES = 4
"""Below the greatest: what is smaller by more stands where they begin."""


class Spread(NamedTuple):
    """The extremes of a figure among some weights."""

    least: float
    greatest: float


class Spreads:
    """The figures of weights in the order of the tree, where what is below a branch lies together.

    Parameters
    ----------
    outline : Outline
    figures : mapping
        By the name of a weight, its figures by their columns; of one that was not read there are none.
    kinds : mapping
        By the name of a weight that stands out, by what; they are ordered, the worst first.
    """

    def __init__(
        self,
        outline: Outline,
        figures: Mapping[str, Mapping[str, float]],
        kinds: Mapping[str, _Kind],
    ) -> None:
        weights = outline.in_order
        names = [one.name for one in weights]
        self._span = outline.span
        counts = np.array([is_counter(one) for one in weights], bool)
        self._values = {
            column: np.array([figures.get(name, {}).get(column, math.nan) for name in names])
            for column, _ in figure_columns()
        }
        self._learnt = {column: np.where(counts, math.nan, values) for column, values in self._values.items()}
        self._names, self._kinds = names, sorted(set(kinds.values()))
        codes = {kind: i for i, kind in enumerate(self._kinds)}
        self._codes = np.array([codes[kinds[name]] if name in kinds else -1 for name in names], np.int64)
        self._is_unread = np.array([_is_read(one) and not figures.get(one.name) for one in weights], bool)

    def kinds(self, branch: int) -> list[tuple[_Kind, list[str]]]:
        """Return what stands out in a branch and below it, the worst first, each with the names of the weights."""
        span = self._span(branch)
        codes = self._codes[span]
        return [
            (self._kinds[code], [self._names[span.start + at] for at in np.flatnonzero(codes == code)])
            for code in np.unique(codes[codes >= 0])
        ]

    def num_weights(self, branch: int) -> int:
        """Return how many weights a branch and what is below it are."""
        return len(self._names[self._span(branch)])

    def ends(self, branch: int) -> tuple[str, str]:
        """Return the first and the last name of a branch and what is below it."""
        span = self._span(branch)
        return self._names[span.start], self._names[span.stop - 1]

    def of(self, column: str, branch: int) -> Spread | None:
        """Return the extremes of a figure in a branch and below it; None where no weight has it, or some are unread.

        What counts is left out, unless there is nothing else.
        """
        span = self._span(branch)
        if self._is_unread[span].any():
            return None
        return _spread_of(self._learnt[column][span]) or _spread_of(self._values[column][span])

    def place(self, column: str, spread: Spread) -> tuple[float, float]:
        """Return where on a logarithmic scale of all weights, from 0 to 1, positive figures lie."""
        every = _spread_of(self._learnt[column]) or _spread_of(self._values[column])
        top = every.greatest if every is not None else 0
        return _place(spread.least, top), _place(spread.greatest, top)


def _is_read(one: WeightEntry) -> bool:
    """Return whether a scan of all reads a weight: it has values, which are stored."""
    return not one.problem and one.kind != COMPUTED and one.numel > 0


def _spread_of(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Spread | None:
    known = values[~np.isnan(values)]
    return Spread(float(known.min()), float(known.max())) if known.size else None


def _place(value: float, top: float) -> float:
    if value == top or value <= 0:
        return float(value > 0)
    return min(max(1 + (math.log10(value) - math.log10(top)) / _DECADES, 0.0), 1.0)
