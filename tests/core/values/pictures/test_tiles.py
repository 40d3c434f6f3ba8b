"""Which planes of a tensor are shown, and that the caption says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.core.values.pictures.image_layout import tiles_of

SHAPES = st.lists(st.integers(0, 5), max_size=5).map(tuple)


@given(SHAPES, st.integers(1, 70))
def test_every_index_leads_to_a_plane_of_the_tensor(shape, max_tiles):
    """In order, at most so many, each once, and there is room for all in the grid."""
    tiles = tiles_of(shape, max_tiles=max_tiles)
    array = np.zeros(shape)
    for index in tiles.indices:
        assert np.atleast_2d(array[index]).shape == tiles.plane
    outer = shape[:-2]
    assert list(tiles.indices) == list(np.ndindex(*outer))[:max_tiles]
    assert tiles.grid[0] * tiles.grid[1] >= len(tiles.indices)
    assert bool(tiles.title) == (len(shape) > 2 and bool(tiles.indices))


@pytest.mark.parametrize(
    ("arguments", "title", "grid"),
    [
        (((2, 4, 5, 6), [0, 3]), "plane [0, 3] of 2 × 4", (1, 1)),
        (((2, 4, 5, 6), (-1, -4)), "plane [1, 0] of 2 × 4", (1, 1)),
        (((2, 4, 5, 6),), "plane [0, 0] of 2 × 4", (1, 1)),
        (((2, 4, 5, 6), None, 64), "all planes of 2 × 4", (2, 4)),
        (((1000, 5, 5), None, 64), "the first 64 planes of 1,000", (8, 8)),
        (((5, 6), ()), "", (1, 1)),
        (((6,),), "", (1, 1)),
        (((),), "", (1, 1)),
    ],
)
def test_the_title_names_the_shown_planes(arguments, title, grid):
    """In words, with the index."""
    tiles = tiles_of(*arguments)
    assert (tiles.title, tiles.grid) == (title, grid)


@pytest.mark.parametrize(
    ("shape", "index"), [((2, 3, 4), [2]), ((2, 3, 4), [-3]), ((2, 3, 4), []), ((2, 3, 4), ["a"]), ((3, 4), [0])]
)
def test_an_index_that_leads_nowhere_is_refused(shape, index):
    """It names the shape and what would do."""
    with pytest.raises(tnp.BadRequestError, match=r"leads (to no plane|nowhere)"):
        tiles_of(shape, index)
