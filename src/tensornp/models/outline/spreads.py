"""Findings and extremes of figures of all weights below a branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tensornp.models.entries.entry import COMPUTED, WeightEntry, is_counter
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
        self._outline, self._figures, self._kinds = outline, figures, kinds

    def names(self, branch: int) -> list[str]:
        """Return the names of the weights in a branch."""
        return [one.name for one in self._outline.weights_of(branch)]

    def kinds(self, branch: int) -> list[tuple[_Kind, list[str]]]:
        """Return the findings in a branch with the names of weights, the worst first."""
        alike: dict[_Kind, list[str]] = {}
        for name in self.names(branch):
            if name in self._kinds:
                alike.setdefault(self._kinds[name], []).append(name)
        return sorted(alike.items())

    def of(self, branch: int) -> dict[str, Spread]:
        """Return the extremes of each column in a branch; empty if some weights are unread."""
        weights = self._outline.weights_of(branch)
        if any(_is_read(one) and not self._figures.get(one.name) for one in weights):
            return {}
        # Counters are left out, unless there is nothing else.
        learnt = self._extremes(one for one in weights if not is_counter(one))
        return self._extremes(filter(is_counter, weights)) | learnt

    def _extremes(self, weights: Iterable[WeightEntry]) -> dict[str, Spread]:
        found: dict[str, Spread] = {}
        for one in weights:
            for column, value in self._figures.get(one.name, {}).items():
                least, greatest = found.get(column, (value, value))
                found[column] = Spread(min(least, value), max(greatest, value))
        return found


def _is_read(one: WeightEntry) -> bool:
    """Return whether a scan reads a weight: it has stored values."""
    return not one.problem and one.kind != COMPUTED and one.numel > 0
