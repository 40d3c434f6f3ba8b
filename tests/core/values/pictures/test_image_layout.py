"""How dimensions make pictures: for any shape what is shown lies within it, in bounded numbers, and is said."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.pictures.image_layout import LAYOUTS, MAX_PIXELS, MAX_SIDE, MAX_TILES, layout_of

SHAPES = st.lists(st.integers(1, 10) | st.integers(1, 10**6), min_size=2, max_size=4).map(tuple)


@settings(deadline=None)
@given(SHAPES, st.data())
def test_what_is_shown_lies_within_the_tensor_and_is_bounded(shape, data):
    """Whatever layout is named or found; each tile has a place in the grid, and an index of its own."""
    named = data.draw(st.sampled_from([None, *(name for name in LAYOUTS if len(name) == len(shape))]))
    found = layout_of(shape, named)
    assert all(0 <= place < size for places, size in zip(found.places, shape, strict=True) for place in places)
    sizes = dict(zip(found.name, map(len, found.places), strict=True))
    num_tiles = math.prod(sizes[letter] for letter in found.outer)
    assert num_tiles <= MAX_TILES and num_tiles <= math.prod(found.grid) < num_tiles + max(found.grid)
    assert len(found.indices) == len(set(found.indices)) == num_tiles
    assert num_tiles * sizes["H"] * sizes["W"] <= MAX_PIXELS and max(sizes["H"], sizes["W"]) <= MAX_SIDE
    assert set(found.name) - set(found.outer) - set("HW") <= {"C"}, "colours alone are no tiles"
    assert bool(found.reason) == (named is None)
    assert found.words[2] or num_tiles == 1


def test_values_that_are_no_brightness_are_called_by_their_own_dtype():
    """And not by that of the array, which is another one for the shortest complex numbers."""
    with pytest.raises(tnp.BadRequestError, match="complex32 values are no brightness"):
        tnp.image(torch.zeros(4, 4, dtype=torch.complex32))
