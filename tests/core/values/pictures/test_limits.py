"""The colours run between limits that are stated, robust, and symmetric about the centre of what is signed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensornp.core.values.pictures.heatmap import Limits, heatmap_of

NUMBERS = st.lists(st.floats(width=32) | st.sampled_from([0.0, 1.0, -1.0]), min_size=1, max_size=60)


def heatmap(values, **options):
    plane = np.array([values], np.float64)
    return heatmap_of(plane.shape, lambda rows, columns: plane[:, columns], **options)


@given(NUMBERS)
def test_every_pixel_lies_between_the_limits_or_is_counted(values):
    """For any values; what is signed has the centre in the middle."""
    drawn = heatmap(values)
    found = drawn.limits
    finite = [x for x in values if math.isfinite(x)]
    if not finite:
        assert math.isnan(found.low) and math.isnan(found.high) and found.num_below == found.num_above == 0
        return
    assert found.num_below == sum(x < found.low for x in finite)
    assert found.num_above == sum(x > found.high for x in finite)
    if drawn.is_signed:
        assert -found.low == found.high
    else:
        assert min(finite) <= found.low <= found.high <= max(finite)


def test_one_outlier_does_not_turn_all_else_grey():
    """It lies beyond and is counted; the limits are those of all others."""
    values = [*np.linspace(-1, 1, 200), 1000.0]
    found = heatmap(values, max_width=300).limits
    assert (found.low, found.high) == (-found.high, pytest.approx(1, abs=0.02))
    assert found.num_above == 1


def test_without_outliers_nothing_lies_beyond():
    """The limits are the least and the greatest."""
    assert heatmap([3.0, 9.0, 4.0]).limits == Limits(3.0, 9.0)
    assert heatmap([-3.0, 9.0, 4.0]).limits == Limits(-9.0, 9.0)
    assert heatmap([5.0, 5.0]).limits == Limits(5.0, 5.0)
    assert heatmap([-3e38, 3e38]).limits == Limits(-3e38, 3e38)
    assert heatmap([-1.7e308, 1.7e308]).limits == Limits(-1.7e308, 1.7e308)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.0, 4e307])
def test_shares_are_even_at_any_scale(scale):
    """Where a difference is larger than any float, and where the half of a number is none."""
    values = np.arange(-4, 5) * scale
    assert Limits(values[0], values[-1]).shares(values) == pytest.approx(np.arange(9) / 8)
