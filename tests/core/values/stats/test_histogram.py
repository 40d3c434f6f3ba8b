"""Counts over the axis of values: nothing is lost, nothing leaks, and a bin lies where its values are."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.stats.distribution import Histogram


def histogram(counts, edges):
    return Histogram(np.array(counts), np.array(edges, np.float64), "all elements")


def exact_cells(counts, edges, num_cells):
    """Return what each cell holds, by fractions."""
    edges = [Fraction(edge) for edge in edges]
    width = (edges[-1] - edges[0]) / num_cells
    found = []
    for i in range(num_cells):
        low, high = edges[0] + i * width, edges[0] + (i + 1) * width
        inside = [max(min(b, high) - max(a, low), 0) / (b - a) for a, b in itertools.pairwise(edges)]
        found.append(sum(count * share for count, share in zip(counts, inside, strict=True)))
    return found


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
    st.data(),
    st.integers(1, 80),
    st.sampled_from([-1060, -3, 0, 10, 1010]),
)
@settings(max_examples=50, deadline=None)
def test_a_cell_holds_its_part_of_each_bin(counts, data, num_cells, exponent):
    """By exact fractions, for bins of any widths, of numbers as small and as large as there are."""
    places = data.draw(
        st.lists(st.integers(-8192, 8191), min_size=len(counts) + 1, max_size=len(counts) + 1, unique=True)
    )
    edges = [math.ldexp(place, exponent) for place in sorted(places)]
    found = histogram(counts, edges).cells(num_cells)
    expected = exact_cells(counts, edges, num_cells)
    assert found.sum() == pytest.approx(sum(counts), rel=1e-12)
    # A border that is almost that of a bin is taken for it.
    assert found == pytest.approx([float(part) for part in expected], rel=1e-9, abs=1e-4 * max(counts) + 1e-9)
    if num_cells == 1:
        assert found[0] == sum(counts)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.0, 1.5e308])
def test_bins_are_parted_alike_at_any_scale(scale):
    """From the least to the greatest, also where their difference is larger than any float, or their half is none."""
    values = np.arange(-80, 81) * 2.0**-7 * scale if scale > 1e-300 else np.arange(-80, 81) * scale
    found = tnp.stats(values).histogram
    assert (found.edges[0], found.edges[-1]) == (values[0], values[-1])
    assert len(found.counts) > 8
    assert np.array_equal(
        found.counts,
        [
            ((values >= a) & (values < b)).sum()
            for a, b in zip(found.edges[:-1], [*found.edges[1:-1], math.inf], strict=True)
        ],
    )
