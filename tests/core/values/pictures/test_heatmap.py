"""Nothing is hidden by downsampling: each pixel is what brute force finds in its cell, however the blocks came."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensornp.core.values.pictures import heatmap
from tensornp.core.values.pictures.heatmap import FINITE, NAN, NEGINF, POSINF, Heatmap

DTYPES = [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8, np.uint64, np.bool_]
ODD = [np.nan, np.inf, -np.inf]


def built(plane, **options) -> Heatmap:
    return heatmap.heatmap_of(
        plane.shape, lambda rows, columns: plane[rows.start : rows.stop, columns.start : columns.stop], **options
    )


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


@settings(max_examples=50, deadline=None)
@given(st.data(), planes(), st.integers(1, 40), st.integers(1, 40))
def test_each_pixel_is_what_brute_force_finds_in_its_cell(data, plane, height, width):
    """For every dtype, size, order in memory, and size of blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heatmap, "BLOCK_NUMEL", data.draw(st.integers(1, 2000)))
        found = built(plane, max_height=height, max_width=width)
    assert found.flags.shape[0] <= height
    assert found.flags.shape[1] <= width
    assert_same(found, *brute_force(plane, found))
    seen = plane.astype(float)[np.repeat(np.repeat(found.flags != NAN, found.cell[0], 0), found.cell[1], 1)[
        : plane.shape[0], : plane.shape[1]
    ]]  # fmt: skip
    assert found.is_signed == bool((seen < 0).any() and (seen > 0).any())


def test_memory_is_bounded_by_the_picture_and_a_block():
    """Sixteen million elements in blocks of 131,072 take less than one of these blocks beside a few pictures."""
    block = np.random.default_rng(0).normal(size=(32, 4096)).astype(np.float32)
    tracemalloc.start()
    found = heatmap.heatmap_of((4096, 4096), lambda rows, columns: block[: len(rows), : len(columns)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < block.nbytes + 6 * found.values.nbytes
