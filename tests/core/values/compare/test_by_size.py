"""The largest difference between two tensors, by NumPy's argmax."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from unchanged import unchanged

from tensornp.core.values.compare.by_size import largest_difference


@given(
    st.lists(st.integers(1, 4), max_size=3).map(tuple),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["float32", "bfloat16", "int8", "bool", "complex64"]),
)
@settings(deadline=None, max_examples=60)
def test_it_is_the_first_of_the_largest(shape, seed, dtype):
    """None if nothing differs."""
    torch.manual_seed(seed)
    a, b = (torch.randn(shape).mul(3).to(getattr(torch, dtype)) for _ in range(2))
    b = torch.where(torch.rand(shape) < 0.3, a, b)
    sizes = np.abs(b.to(torch.complex128).numpy() - a.to(torch.complex128).numpy()).astype(float)
    with unchanged(a, b):
        found = largest_difference(a, b)
    if not sizes.any():
        assert found is None
        return
    expected = np.unravel_index(int(sizes.argmax()), shape) if shape else ()
    assert found == tuple(int(i) for i in expected)


def test_it_goes_over_any_number_of_blocks():
    """The last block has the largest."""
    a = torch.zeros(1100, 700)
    b = a.clone()
    b[0, 5], b[3, 699], b[1099, 0] = 1, 2, 3
    assert largest_difference(a, b) == (1099, 0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_value_that_is_finite_on_one_side_alone_is_the_largest(is_first):
    """A NaN and an infinity of both are no difference."""
    nan, inf = math.nan, math.inf
    before = torch.tensor([nan, inf, 1.0, 1.0, 1.0])
    after = torch.tensor([nan, inf, 9.0, nan, 1.0])
    assert largest_difference(*((before, after) if is_first else (after, before))) == (3,)
