"""Findings and extremes of figures of all weights below a branch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.repeated import is_counter
from tensornp.models.outline.columns import figure_columns
from tensornp.models.outline.outline import Outline

_Kind = tuple[int, str]


class Spread(NamedTuple):
    """The extremes of a figure among some weights."""

    least: float
    greatest: float


class Spreads:
    """Findings and statistics in the order of the tree.

    `figures` are the numbers by weight and column, and `kinds` the worst finding of weights that have one.
    """

    def __init__(
        self, outline: Outline, figures: Mapping[str, Mapping[str, float]], kinds: Mapping[str, _Kind]
    ) -> None:
        weights = outline.in_order
        self._names = [one.name for one in weights]
        self._span = outline.span
        counts = np.array([is_counter(one) for one in weights], bool)
        self._values = {
            column: np.array([figures.get(name, {}).get(column, math.nan) for name in self._names])
            for column, _ in figure_columns()
        }
        # Counters are left out, unless there is nothing else.
        self._learnt = {column: np.where(counts, math.nan, values) for column, values in self._values.items()}
        self._found = [kinds.get(name) for name in self._names]
        self._is_unread = np.array([_is_read(one) and not figures.get(one.name) for one in weights], bool)

    def kinds(self, branch: int) -> list[tuple[_Kind, list[str]]]:
        """Return the findings in a branch with the names of weights, the worst first."""
        span, alike = self._span(branch), dict[_Kind, list[str]]()
        for name, kind in zip(self._names[span], self._found[span], strict=True):
            if kind is not None:
                alike.setdefault(kind, []).append(name)
        return sorted(alike.items())

    def num_weights(self, branch: int) -> int:
        """Return the number of weights in a branch."""
        return len(self._names[self._span(branch)])

    def ends(self, branch: int) -> tuple[str, str]:
        """Return the first and the last name in a branch."""
        span = self._span(branch)
        return self._names[span.start], self._names[span.stop - 1]

    def of(self, column: str, branch: int) -> Spread | None:
        """Return the extremes of a column in a branch, None if some are unread."""
        span = self._span(branch)
        if self._is_unread[span].any():
            return None
        return _spread_of(self._learnt[column][span]) or _spread_of(self._values[column][span])


def _is_read(one: WeightEntry) -> bool:
    """Return whether a scan reads a weight: it has stored values."""
    return not one.problem and one.kind != COMPUTED and one.numel > 0


def _spread_of(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Spread | None:
    known = values[~np.isnan(values)]
    return Spread(float(known.min()), float(known.max())) if known.size else None
