"""Boxes of a tensor: what NumPy takes of the whole is what all boxes give together."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensornp.models.reading.boxes import Box, boxes_of_row, meet, why_not_whole
from tensornp.models.reading.selection import taken_by


def cut(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Box]:
    """Return boxes of which a tensor consists, cut anywhere."""
    cuts = [sorted({0, size, *map(int, rng.integers(0, size + 1, 2))}) for size in shape]
    pairs = [list(pairwise(ends)) or [(0, 0)] for ends in cuts]
    return [Box(tuple(a for a, _ in one), tuple(b - a for a, b in one)) for one in product(*pairs)]


def some_slice(rng: np.random.Generator, size: int) -> slice:
    first, last, step = (int(rng.integers(-size - 2, size + 3)) for _ in range(3))
    return slice(first, last, step or None)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 7), max_size=4))
def test_each_index_is_taken_of_one_box(seed, sizes):
    """Whatever the step, and however the boxes are cut."""
    rng, shape = np.random.default_rng(seed), tuple(sizes)
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    boxes = cut(rng, shape)
    assert why_not_whole(shape, boxes) == ""
    index = tuple(some_slice(rng, size) for size in shape)
    selection = taken_by(index, shape)
    made = np.full(selection.counts, -1)
    for box in boxes:
        met = meet(selection.ranges, box)
        if met is not None:
            part = whole[tuple(slice(i, i + n) for i, n in zip(*box, strict=True))]
            assert (made[met.wanted] == -1).all()
            made[met.wanted] = part[met.own]
    assert np.array_equal(made[selection.final], whole[index])


@given(st.integers(0, 2**32), st.lists(st.integers(1, 6), max_size=4))
def test_elements_in_a_row_are_boxes(seed, sizes):
    """In their order, and few of them."""
    rng, shape = np.random.default_rng(seed), tuple(sizes)
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    first = int(rng.integers(whole.size))
    count = int(rng.integers(1, whole.size - first + 1))
    boxes = list(boxes_of_row(first, count, shape))
    parts = [whole[tuple(slice(i, i + n) for i, n in zip(*box, strict=True))].reshape(-1) for box in boxes]
    assert np.concatenate(parts).tolist() == list(range(first, first + count))
    assert len(boxes) <= max(2 * len(shape) - 1, 1)


@pytest.mark.parametrize("shape", [(4, 6), (24,), (2, 3, 4)])
def test_boxes_that_are_no_whole_are_told(shape):
    """One too few, one twice, one a step too far."""
    boxes = cut(np.random.default_rng(3), shape)
    assert "are missing" in why_not_whole(shape, boxes[1:])
    assert why_not_whole(shape, [*boxes, boxes[0]]) == "its chunks overlap"
    last = boxes[-1]
    moved = Box((last.offsets[0] + 1, *last.offsets[1:]), last.sizes)
    assert "reaches beyond its shape" in why_not_whole(shape, [*boxes[:-1], moved])
    assert why_not_whole((), [Box((), ())]) == ""
    assert why_not_whole((), [Box((), ())] * 2) == "its chunks overlap"
