"""Counts between edges, and their density over the axis of values, which a picture shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.values.scopes import SEVERAL

Array = np.ndarray[Any, Any]
NUM_BINS = 64
"""Bins of a histogram."""
_DECIMALS = 9
"""Decimals of the width of a cell to which its border is rounded, so that nothing leaks into an empty cell."""


@dataclass(frozen=True)
class Histogram:
    """Counts between edges.

    Attributes
    ----------
    counts : numpy.ndarray
        int64, one less than the edges; they add up to the finite elements that were counted.
    edges : numpy.ndarray
        float64, rising; a bin has its lower edge, but not its upper one; the last bin has both.
    scope : str
        The elements that were counted: "all elements", or "sampled 1/17".
    """

    counts: Array
    edges: Array
    scope: str

    _mime_, _repr_html_ = mime_of, html_of

    def cells(self, num_cells: int) -> Array:
        """Return the number of elements in `num_cells` equal intervals between the outer edges, as float64.

        The elements of a bin lie evenly between its edges, so this is the mean density in each interval.
        """
        if self.edges[0] == self.edges[-1]:
            return np.full(num_cells, self.counts.sum() / num_cells)
        _, edges = scaled(self.edges)
        shares = (edges - edges[0]) / (edges[-1] - edges[0])
        below = np.interp(
            np.arange(num_cells + 1),
            np.round(shares * num_cells, _DECIMALS),
            np.concatenate(([0.0], np.cumsum(self.counts))),
        )
        # If edges meet, everything between them is on the inner side.
        below[0], below[-1] = 0, self.counts.sum()
        return np.diff(below)


def scaled(numbers: Array) -> tuple[int, Array]:
    """Return an exponent of two, and the numbers divided by that power, so that no difference overflows."""
    exponent = 1 + math.frexp(float(np.abs(numbers).max()))[1]
    return exponent, np.ldexp(numbers, -exponent)


def put_together(parts: Sequence[Histogram]) -> Histogram | None:
    """Return one histogram of several, in equal bins; None for no parts.

    Counts are rounded, because the elements of a bin are assumed to lie evenly between its edges.
    """
    if not parts:
        return None
    low, high = min(float(one.edges[0]) for one in parts), max(float(one.edges[-1]) for one in parts)
    scope = SEVERAL if len({one.scope for one in parts}) > 1 else parts[0].scope
    if low == high:
        return Histogram(np.array([sum(int(one.counts.sum()) for one in parts)]), np.array([low, high]), scope)
    exponent, (first, last) = scaled(np.array([low, high]))
    inner = np.ldexp(np.linspace(first, last, NUM_BINS + 1)[1:-1], exponent)
    edges = np.concatenate(([low], inner, [high]))
    counts = np.diff(np.round(sum(_below(one, edges) for one in parts))).astype(np.int64)
    return Histogram(counts, edges, scope)


def _below(one: Histogram, edges: Array) -> Array:
    """Return the number of elements below each edge."""
    total = float(one.counts.sum())
    if one.edges[0] == one.edges[-1]:
        found = np.where(edges > one.edges[0], total, 0.0)
    else:
        # Scaled by its own power of two: next to a much larger part, all of it may be too small for a float.
        exponent, own_edges = scaled(one.edges)
        within = np.ldexp(np.clip(edges, one.edges[0], one.edges[-1]), -exponent)
        found = np.interp(within, own_edges, np.concatenate(([0.0], np.cumsum(one.counts))))
    found[0], found[-1] = 0, total
    return found
