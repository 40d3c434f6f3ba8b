"""Counts between edges, and the density of what was counted over the axis of values, which is what a picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.values.reading.scopes import SEVERAL
from tensornp.core.values.stats.norms import scaled

Array = np.ndarray[Any, Any]
NUM_BINS = 64
"""Bins of a histogram."""
_DECIMALS = 9
"""Of the width of a cell, up to which its border is that of a bin, so that nothing leaks into an empty one."""


@dataclass(frozen=True)
class Histogram:
    """Counts between edges.

    Attributes
    ----------
    counts : numpy.ndarray
        int64, one less than the edges; they add up to the finite elements that were counted.
    edges : numpy.ndarray
        float64, rising; a bin holds what is at least its lower edge and less than its upper one, the last bin that one
        too. No number of one key lies in two bins, so the counts are exact.
    scope : str
        What was counted: "all elements", or "sample of 1,048,576".
    rank_error : float
        By how much a rank, between 0 and 1, may be wrong with a probability of 5%: 0 where all elements were counted.
    """

    counts: Array
    edges: Array
    scope: str
    rank_error: float

    _mime_, _repr_html_ = mime_of, html_of

    def cells(self, num_cells: int) -> Array:
        """Return, as float64, how many elements each of so many equal intervals between the outer edges holds.

        Those of a bin lie evenly between its edges; so this is the mean density in each interval, whatever the widths.
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
        # Where edges meet, all that lies between them is on the inner side.
        below[0], below[-1] = 0, self.counts.sum()
        return np.diff(below)


def put_together(parts: Sequence[Histogram]) -> Histogram | None:
    """Return what several histograms count, in equal bins from the least to the greatest edge; None of none.

    Those of a bin lie evenly between its edges, as `cells` has it, so that counts are rounded, and their sum is exact
    up to that.
    """
    if not parts:
        return None
    low, high = min(float(one.edges[0]) for one in parts), max(float(one.edges[-1]) for one in parts)
    scope = SEVERAL if len({one.scope for one in parts}) > 1 else parts[0].scope
    rank_error = max(one.rank_error for one in parts)
    if low == high:
        total = sum(int(one.counts.sum()) for one in parts)
        return Histogram(np.array([total]), np.array([low, high]), scope, rank_error)
    # What lies between the greatest numbers of both signs overflows.
    exponent, (first, last) = scaled(np.array([low, high]))
    inner = np.ldexp(np.linspace(first, last, NUM_BINS + 1)[1:-1], exponent)
    edges = np.concatenate(([low], inner, [high]))
    counts = np.diff(np.round(sum(_below(one, edges) for one in parts))).astype(np.int64)
    return Histogram(counts, edges, scope, rank_error)


def _below(one: Histogram, edges: Array) -> Array:
    """Return how many elements lie below each edge."""
    total = float(one.counts.sum())
    if one.edges[0] == one.edges[-1]:
        # What is one number lies in the bin that begins with it, or in the last.
        found = np.where(edges > one.edges[0], total, 0.0)
    else:
        # By its own power of two: by that of another part, all of it may be too small for a float.
        exponent, own_edges = scaled(one.edges)
        within = np.ldexp(np.clip(edges, one.edges[0], one.edges[-1]), -exponent)
        found = np.interp(within, own_edges, np.concatenate(([0.0], np.cumsum(one.counts))))
    found[0], found[-1] = 0, total
    return found
