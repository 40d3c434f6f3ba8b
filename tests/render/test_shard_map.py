"""The facts of a shard as a cell shows them: the sentence, and a map to scale in less than a kilobyte."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import tensornp as tnp
from tensornp.core.tensor.shards import Placement, ShardFacts, indices_held, num_of
from tensornp.render.tensor.shard import map_pixels, map_sides


def facts(shape, mesh_shape, coordinate, cuts, **more):
    """Return the facts of the rank at a place of the mesh, along whose dimensions those of the tensor are cut."""
    placements = tuple(Placement("R") if dim is None else Placement(f"S({dim})", dim) for dim in cuts)
    held = indices_held(shape, mesh_shape, coordinate, placements)
    shape_here = tuple(map(num_of, held))
    return ShardFacts((), mesh_shape, coordinate, placements, shape, shape_here, 0, rank=3, held=held, **more)


def pixels_of(one: ShardFacts) -> np.ndarray:
    """Return what a page shows, where something is drawn."""
    html = tnp.card(one).html
    (source,) = re.findall(r'src="data:image/png;base64,([^"]*)"', html)
    png = base64.b64decode(source)
    assert len(png) < 1000
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[..., 3] > 0
    assert np.array_equal(pixels, map_pixels(*map_sides(one)))
    return pixels


@pytest.mark.parametrize(
    ("one", "size", "filled"),
    [
        (facts((64, 64), (2, 4), (1, 2), (0, 1)), (97, 97), (slice(48, 97), slice(48, 73))),
        (facts((32, 64), (2,), (0,), (0,)), (48, 97), (slice(0, 24), slice(0, 97))),
        (facts((100,), (4,), (1,), (0,)), (13, 97), (slice(0, 13), slice(24, 49))),
        (facts((3, 40, 20), (2, 2), (0, 1), (None, 2)), (97, 48), (slice(0, 97), slice(24, 48))),
    ],
)
def test_the_part_is_drawn_where_it_lies(one, size, filled):
    """To a pixel; all else is clear, but for the borders of the other parts."""
    pixels = pixels_of(one)
    assert pixels.shape == size
    assert pixels[filled].all()
    expected = np.zeros(size, bool)
    expected[filled] = True
    borders = pixels & ~expected
    assert borders.sum() < 6 * sum(size)


def test_borders_are_those_of_all_ranks():
    """Of uneven parts too: 10 columns on 4 ranks are 3, 3, 3 and 1."""
    pixels = pixels_of(facts((10, 10), (4,), (3,), (1,)))
    assert np.flatnonzero(pixels[50]).tolist()[:4] == [0, 29, 58, 86]
    assert pixels[50, 86:].all()
    assert np.flatnonzero(pixels[:, 10]).tolist() == [0, 96]


def test_what_is_not_drawn_is_said():
    """The borders of a thousand parts, and a side that would be too narrow."""
    html = tnp.card(facts((4096, 16), (1024,), (512,), (0,))).html
    assert "no borders of 1,024 parts along axis 0" in html
    assert "the shorter side is drawn longer than it is" in html
    assert "rows down, columns across" in html
    assert "filled is what rank 3 holds" in html


def test_the_text_is_the_sentence():
    """Which is all there is of what is nowhere: outside of the mesh, or empty."""
    one = facts((64, 512), (16, 64), (0, 3), (0, 1))
    assert tnp.card(one).text == str(one)
    outside = ShardFacts((), (2,), None, (Placement("S(0)", 0),), (4,), (0,), 0, rank=3)
    for nothing in (outside, facts((0, 3), (2,), (0,), (0,))):
        assert "<img" not in tnp.card(nothing).html
        assert str(nothing) in tnp.card(nothing).html
