"""Which elements each rank holds: the boxes of all ranks tile the tensor once, and are those that torch cuts."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensornp.core.tensor.shards import ShardFacts, box_held


@st.composite
def meshes(draw):
    """Return the shape of a tensor, that of a mesh, and the dimensions that are cut along it."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
    mesh_shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    one = st.none() | st.integers(0, len(shape) - 1)
    return shape, mesh_shape, tuple(draw(st.lists(one, min_size=len(mesh_shape), max_size=len(mesh_shape))))


@given(meshes())
def test_each_box_is_what_torch_cuts(mesh):
    """By `torch.chunk` along each dimension of the mesh; each index leads to the place of the element."""
    shape, mesh_shape, dims = mesh
    whole = torch.arange(math.prod(shape)).view(shape)
    for coordinate in itertools.product(*map(range, mesh_shape)):
        local = whole
        for at, n, dim in zip(coordinate, mesh_shape, dims, strict=True):
            if dim is not None:
                parts = local.chunk(n, dim)
                local = parts[at] if at < len(parts) else local.narrow(dim, 0, 0)
        offsets, sizes = box_held(shape, mesh_shape, coordinate, dims)
        assert sizes == tuple(local.shape)
        one, here = ShardFacts(shape, sizes, offsets, math.prod(mesh_shape)), range(offsets[0], offsets[0] + sizes[0])
        assert [i for i in range(shape[0]) if one.index_here((i,)) is not None] == list(here)
        assert all(one.index_in_whole(one.index_here((i,))) == (i,) for i in here)
        assert whole[tuple(slice(i, i + n) for i, n in zip(offsets, sizes, strict=True))].equal(local)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (ShardFacts((64, 512), (4, 8), (0, 24), 1024, coordinate=(0, 3), rank=3),
         "rank 3 of 1,024 holds rows 0–3 of 64, columns 24–31 of 512 (1/1,024)"),
        (ShardFacts((8, 8), (4, 8), (4, 0), 16, 8, coordinate=(0, 1), rank=1),
         "rank 1 of 16 holds rows 4–7 of 8 (1/2); the same on 8 ranks"),
        (ShardFacts((7, 3), (4, 3), (0, 0), 2, coordinate=(0,), rank=0),
         "rank 0 of 2 holds rows 0–3 of 7 (12 of 21 elements)"),
        (ShardFacts((1,), (0,), (1,), 4, coordinate=(1,), rank=1), "rank 1 of 4 holds none: empty on this rank"),
        (ShardFacts((4,), (2,), (2,), 2, coordinate=(1,), rank=5), "rank 5, one of 2, holds elements 2–3 of 4 (1/2)"),
        (ShardFacts((4, 4), (2, 4), None, 2, coordinate=(0,), rank=0), "rank 0 of 2 holds 8 of 16 elements"),
        (ShardFacts((4,), (0,), None, 2, rank=3), "rank 3 is none of the 2 that hold it"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_a_rank_holds(one, said):
    """With the same words for all shapes."""
    assert str(one) == said
