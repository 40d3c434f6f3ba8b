"""What differs between two tensors in the order of its size, by a sort of NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from unchanged import unchanged

from tensornp.core.values.compare.by_size import next_by_size


def walked(a, b, num):
    """Return the elements that one comes by from the largest on."""
    at, found = None, []
    for _ in range(num):
        ranked = next_by_size(a, b, at)
        at = ranked.place
        found.append(ranked)
    return found


@given(
    st.lists(st.integers(1, 4), max_size=3).map(tuple),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["float32", "bfloat16", "int8", "bool", "complex64"]),
)
@settings(deadline=None, max_examples=60)
def test_one_walks_from_the_largest_to_the_smallest_and_begins_anew(shape, seed, dtype):
    """In the order of a stable sort, each with its number; what does not differ is passed over."""
    torch.manual_seed(seed)
    a, b = (torch.randn(shape).mul(3).to(getattr(torch, dtype)) for _ in range(2))
    b = torch.where(torch.rand(shape) < 0.3, a, b)
    sizes = np.abs(b.to(torch.complex128).numpy() - a.to(torch.complex128).numpy()).astype(float).ravel()
    order = [int(i) for i in np.argsort(-sizes, kind="stable") if sizes[i]]
    if not order:
        assert next_by_size(a, b) is None
        return
    with unchanged(a, b):
        found = walked(a, b, len(order) + 1)
    places = [tuple(int(i) for i in np.unravel_index(at, shape)) if shape else () for at in [*order, order[0]]]
    assert [one.place for one in found] == places
    if shape:
        assert [one.number for one in found] == [*range(1, len(order) + 1), 1]
    assert {one.total for one in found} == {len(order)}


def test_it_goes_over_any_number_of_blocks():
    """In which those of one size stand in the order of their indices."""
    a = torch.zeros(1100, 700)
    b = a.clone()
    b[0, 5], b[3, 699], b[1099, 0], b[5, 5] = 1, 2, 1, -1
    assert [one.place for one in walked(a, b, 5)] == [(3, 699), (0, 5), (5, 5), (1099, 0), (3, 699)]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_no_number_tells_comes_first_and_what_both_have_is_passed_over(is_first):
    """NaN and infinity on one side alone; a NaN and an infinity of both are no difference."""
    nan, inf = math.nan, math.inf
    before = torch.tensor([nan, inf, 1.0, 1.0, 1.0, inf, 1.0])
    after = torch.tensor([nan, inf, 9.0, nan, 1.0, -inf, 2.0])
    pair = (before, after) if is_first else (after, before)
    assert [one.place[0] for one in walked(*pair, 4)] == [3, 5, 2, 6]


def test_from_what_does_not_differ_it_begins_at_the_largest():
    """And from an index that is none."""
    a, b = torch.zeros(4), torch.tensor([0.0, 3, 1, 0])
    for after in (None, (0,), (9,), (1, 2)):
        assert next_by_size(a, b, after) == ((1,), 1, 2)
