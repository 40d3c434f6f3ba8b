"""Sets of addresses, against an oracle that lists every byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensornp.core.memory.extents import Extent, relation_of

BUFFER = 96


@st.composite
def extents(draw: st.DrawFn) -> Extent:
    """Any strided view of one buffer of `BUFFER` bytes: overlapping itself, reversed, misaligned, of any item size."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    dims = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(dims))
    strides = tuple(draw(st.integers(-12, 12)) * draw(st.sampled_from([1, itemsize])) for _ in range(dims))
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(min(0, s) for s in steps), sum(max(0, s) for s in steps) + itemsize
    if high - low > BUFFER:
        shape, strides, low, high = (2,), (itemsize,), 0, 2 * itemsize
    address = draw(st.integers(-low, BUFFER - high)) + 4096
    return Extent("cpu", address, shape, strides, itemsize, f"int{8 * itemsize}")


def elements(extent: Extent) -> list[range]:
    """Return the bytes of each element in index order."""
    addresses = np.zeros((), dtype=np.int64) + extent.address
    for size, stride in zip(extent.shape, extent.strides, strict=True):
        addresses = addresses[..., None] + stride * np.arange(size)
    return [range(a, a + extent.itemsize) for a in addresses.ravel().tolist()]


def expected(a: Extent, b: Extent) -> str | None:
    """Return the relation by comparing every byte."""
    if a.shape == b.shape and elements(a) == elements(b):
        return "same elements" if a.meaning == b.meaning else "reinterpreted"
    left, right = ({byte for item in elements(e) for byte in item} for e in (a, b))
    if left == right:
        # Sets with strides that overlap themselves are not always known to be equal.
        overlaps_itself = any(len(left) < len(elements(e)) * e.itemsize for e in (a, b))
        return "overlapping" if overlaps_itself and relation_of(a, b) == "overlapping" else "reinterpreted"
    return "overlapping" if left & right else None


@pytest.mark.slow
@given(extents(), extents())
@settings(max_examples=500, deadline=None)
@example(
    Extent("cpu", 0x1000, (4,), (8,), 4, "float32"), Extent("cpu", 0x1004, (4,), (8,), 4, "float32")
)  # even and odd elements
def test_the_relation_is_that_of_the_address_sets(a, b):
    """Random strided views: overlapping, reversed, interleaved, expanded, misaligned."""
    assert relation_of(a, b) == expected(a, b)
    assert relation_of(b, a) == expected(b, a)


def test_a_hard_case_is_bounded_and_said_to_be_unknown():
    """NumPy's own example takes minutes; here it may overlap."""
    # https://numpy.org/doc/stable/reference/generated/numpy.shares_memory.html names x2 and x1 of this form.
    a = Extent("cpu", 4096, (1049, 1049, 1049), (36674, 61119, 85569), 1, "int8")
    b = Extent("cpu", 4096 + 64023025, (1049, 1049, 1), (12223, 12224, 1), 1, "int8")
    assert relation_of(a, b) == "may overlap"


def test_devices_are_told_apart():
    """Equal addresses on two devices are two places."""
    a = Extent("cpu", 4096, (4,), (4,), 4, "float32")
    assert relation_of(a, Extent("cuda:0", 4096, (4,), (4,), 4, "float32")) is None
    b = Extent("cuda:0", 4100, (4,), (4,), 4, "float32")
    assert relation_of(Extent("cuda:0", 4096, (4,), (4,), 4, "float32"), b) == "overlapping"


def test_huge_and_deep_shapes_are_no_burden():
    """An expanded view that would overflow an array, and more dimensions than NumPy has."""
    huge = Extent("cpu", 4096, (2**31, 2**31), (0, 0), 4, "float32")
    assert relation_of(huge, Extent("cpu", 4096, (1,), (4,), 4, "float32")) == "reinterpreted"
    deep = Extent("cpu", 4096, (2,) * 65, tuple(3**k for k in range(65)), 1, "int8")
    assert relation_of(deep, Extent("cpu", 4098, (4,), (1,), 1, "int8")) == "may overlap"
