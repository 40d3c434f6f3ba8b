"""Elements read block by block, against NumPy's own indexing of the same memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tensornp.core.lowlevel import raw_memory
from tensornp.core.memory.strided import Strided, bits_of, strided_of_array, strided_of_tensor


@st.composite
def views(draw):
    """An array over 400 numbers with any strides: negative, zero, overlapping."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    steps = [draw(st.integers(-12, 12)) for _ in shape]
    first = sum((n - 1) * -step for n, step in zip(shape, steps, strict=True) if step < 0 and n)
    base = np.arange(400, dtype=draw(st.sampled_from(["u1", "i2", "f4", "f8", "c16"])))
    return as_strided(base[first:], shape, [step * base.itemsize for step in steps])


def read(strided: Strided, max_numel: int, in_place: bool) -> list[np.ndarray]:
    return strided.use_each(list(strided.blocks(max_numel)), lambda block, _: block.copy(), in_place=in_place)


@given(views(), st.integers(1, 30), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_in_index_order_each_element_comes_once_and_in_its_place(array, max_numel, in_place, is_raw):
    """Whatever the strides, and however few elements are read at once."""
    was_on = raw_memory.is_on()
    raw_memory.switch(is_raw)
    try:
        strided = strided_of_array(array, array.dtype)
        blocks = read(strided, max_numel, in_place)
        assert all(0 < block.size <= max_numel for block in blocks)
        together = np.concatenate([block.reshape(-1) for block in blocks]) if blocks else np.empty(0)
        assert np.array_equal(together, array.reshape(-1))
    finally:
        raw_memory.switch(was_on)


@given(views(), st.integers(1, 30))
@settings(max_examples=300, deadline=None)
def test_in_memory_order_each_element_counts_as_often_as_it_is_meant(array, max_numel):
    """Those of a stride of 0 are read once."""
    ordered, _ = strided_of_array(array, array.dtype).in_memory_order()
    blocks = read(ordered, max_numel, in_place=True)
    values = [value for block in blocks for value in block.reshape(-1).tolist()]
    together = sorted(values * ordered.times, key=abs)
    assert together == sorted(array.reshape(-1).tolist(), key=abs)
    assert ordered.numel * ordered.times == array.size


@given(views(), st.integers(1, 30), st.data())
@settings(max_examples=300, deadline=None)
def test_an_axis_keeps_its_indices(array, max_numel, data):
    """Each block lies within the indices of the axis that its start and shape tell."""
    if not array.ndim:
        return
    axis = data.draw(st.integers(0, array.ndim - 1))
    ordered, at = strided_of_array(array, array.dtype).in_memory_order(axis)
    assert ordered.shape[at] == array.shape[axis]
    sums = np.zeros(array.shape[axis], complex)
    blocks = list(ordered.blocks(max_numel))
    for block, part in zip(blocks, read(ordered, max_numel, in_place=True), strict=True):
        others = tuple(d for d in range(part.ndim) if d != at)
        sums[block.start[at] : block.start[at] + block.shape[at]] += part.sum(others, dtype=complex) * ordered.times
    assert np.array_equal(sums, array.sum(tuple(d for d in range(array.ndim) if d != axis), dtype=complex))


@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (3, 2**17 + 1), (2**18,), (7, 5, 2**15)])
def test_blocks_are_of_bounded_size_and_depend_on_the_shape_alone(shape):
    """All elements, none twice."""
    strided = strided_of_tensor(torch.empty(shape), bits_of(4))
    blocks = list(strided.blocks())
    assert sum(math.prod(block.shape) for block in blocks) == math.prod(shape)
    assert all(math.prod(block.shape) <= 2**17 for block in blocks)


def test_a_tensor_stays_as_it_is():
    """Its storage is not locked."""
    t = torch.arange(12.0).view(3, 4).T
    strided = strided_of_tensor(t.detach(), np.dtype("f4"))
    assert np.array_equal(
        np.concatenate([block.reshape(-1) for block in read(strided, 5, True)]), t.reshape(-1).numpy()
    )
    assert t.untyped_storage().resizable()
