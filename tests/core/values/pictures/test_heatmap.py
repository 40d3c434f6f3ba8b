"""Nothing is hidden by downsampling: each pixel is what brute force finds in its cell, however the blocks came."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensornp.core.values.pictures.heatmap import FINITE, NAN, NEGINF, NOTHING, POSINF, Heatmap, HeatmapBuilder

DTYPES = [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8, np.uint64, np.bool_]
ODD = [np.nan, np.inf, -np.inf]


def built(plane, **options) -> Heatmap:
    builder = HeatmapBuilder(plane.shape, **options)
    builder.add(plane)
    return builder.finish()


def cell_of(heatmap: Heatmap, at: tuple[int, int]) -> tuple[slice, ...]:
    """Return the rows and columns that a pixel covers."""
    return tuple(slice(i * step, (i + 1) * step) for i, step in zip(at, heatmap.cell, strict=True))


def brute_force(plane, heatmap: Heatmap) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and the flags, found element by element."""
    values, flags = np.empty_like(heatmap.values), np.empty_like(heatmap.flags)
    for at in np.ndindex(flags.shape):
        cell = [float(x) for x in plane[cell_of(heatmap, at)].flat]
        if any(map(math.isnan, cell)):
            values[at], flags[at] = math.nan, NAN
            continue
        values[at] = max(cell, key=lambda x: (abs(x), x))
        flags[at] = {math.inf: POSINF, -math.inf: NEGINF}.get(values[at], FINITE)
    return values, flags


def assert_same(one: Heatmap, values, flags):
    np.testing.assert_array_equal(one.values, values)
    np.testing.assert_array_equal(one.flags, flags)


@st.composite
def planes(draw, max_side: int = 70):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    order = draw(st.sampled_from("CF"))
    shape = draw(st.tuples(st.integers(1, max_side), st.integers(1, max_side)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    plane = np.array(rng.normal(size=shape) * 50, dtype, order=order)
    if dtype.kind == "f":
        for value in draw(st.lists(st.sampled_from(ODD), max_size=6)):
            plane[tuple(rng.integers(shape))] = value
    return plane


@st.composite
def partitions(draw, shape):
    """Rectangles that make up the plane, in any order: some whole rows at a time, or parts of some rows."""
    cuts = [sorted(draw(st.sets(st.integers(1, n), max_size=4)) - {n}) for n in shape]
    rows, columns = ([0, *cut, n] for cut, n in zip(cuts, shape, strict=True))
    return draw(st.permutations([
        (slice(*pair), slice(*other))
        for pair in itertools.pairwise(rows) for other in itertools.pairwise(columns)
    ]))  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.data(), planes(), st.integers(1, 40), st.integers(1, 40))
def test_each_pixel_is_what_brute_force_finds_in_its_cell(data, plane, height, width):
    """For every dtype, size, order in memory, and partition into blocks."""
    builder = HeatmapBuilder(plane.shape, height, width)
    for block in data.draw(partitions(plane.shape)):
        builder.add(plane[block], block[0].start, block[1].start)
    found = builder.finish()
    assert found.flags.shape[0] <= height
    assert found.flags.shape[1] <= width
    assert_same(found, *brute_force(plane, found))
    seen = plane.astype(float)[np.repeat(np.repeat(found.flags != NAN, found.cell[0], 0), found.cell[1], 1)[
        : plane.shape[0], : plane.shape[1]
    ]]  # fmt: skip
    assert found.is_signed == bool((seen < 0).any() and (seen > 0).any())


def test_what_was_not_read_shows_nothing():
    """A scan that was stopped: no colour is made up."""
    builder = HeatmapBuilder((4, 3))
    builder.add(np.array([[1, 2, 3]], np.int32), 1)
    found = builder.finish()
    assert found.flags.tolist() == [[NOTHING] * 3, [FINITE] * 3, [NOTHING] * 3, [NOTHING] * 3]
    assert np.isnan(found.values[found.flags == NOTHING]).all()
    assert found.values[1, 2] == 3


def test_memory_is_bounded_by_the_picture_and_a_block():
    """Sixteen million elements in blocks of 131,072 take less than one of these blocks beside the picture."""
    block = np.random.default_rng(0).normal(size=(32, 4096)).astype(np.float32)
    builder = HeatmapBuilder((4096, 4096))
    tracemalloc.start()
    for row in range(0, 4096, 32):
        builder.add(block, row)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < block.nbytes
