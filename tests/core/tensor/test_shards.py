"""Which elements each rank holds: the boxes of all ranks tile the tensor once, and are those that torch cuts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensornp.core.tensor.shards import Placement, ShardFacts, indices_held, num_of

WHOLE, PENDING = Placement("R"), Placement("P(sum)", is_pending=True)


def cut(dim, split_factor=1):
    """Return the placement that cuts a dimension."""
    return Placement(f"S({dim})", dim, split_factor)


@st.composite
def meshes(draw):
    """Return the shape of a tensor, that of a mesh, and the placements on it."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
    mesh_shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    one = st.one_of(st.just(WHOLE), st.builds(cut, st.integers(0, len(shape) - 1), st.integers(1, 4)))
    return shape, mesh_shape, tuple(draw(st.lists(one, min_size=len(mesh_shape), max_size=len(mesh_shape))))


def facts(shape, mesh_shape, coordinate, placements, **more):
    """Return the facts of the rank at a place of the mesh."""
    held = indices_held(shape, mesh_shape, coordinate, placements)
    return ShardFacts(mesh_shape, coordinate, placements, shape, tuple(map(num_of, held)), held=held, **more)


@pytest.mark.slow
@given(meshes())
def test_the_boxes_of_all_ranks_tile_the_tensor_once(mesh):
    """Each index leads to the place of the element."""
    shape, mesh_shape, placements = mesh
    seen = np.zeros(shape, int)
    for coordinate in itertools.product(*map(range, mesh_shape)):
        one = facts(shape, mesh_shape, coordinate, placements)
        # The first of the ranks with the same elements counts.
        if not any(at for at, placement in zip(coordinate, placements, strict=True) if placement.dim is None):
            indices = [[i for run in runs for i in range(*run)] for runs in one.held]
            seen[np.ix_(*indices)] += 1
            last = tuple(size - 1 for size in one.shape)
            if math.prod(one.shape):
                assert one.index_in_whole(last) == tuple(of_dim[-1] for of_dim in indices)
                assert one.index_here(one.index_in_whole(last)) == last
                assert one.index_here(one.index_in_whole(last)[:1]) == last[:1]
        here = [i for run in one.held[0] for i in range(*run)]
        assert [i for i in range(shape[0]) if one.index_here((i,)) is not None] == here
    assert (seen == 1).all()


@given(meshes())
def test_each_box_is_what_torch_cuts(mesh):
    """By `torch.chunk` along each dimension of the mesh, the parts of strided ones put together."""
    shape, mesh_shape, placements = mesh
    whole = torch.arange(math.prod(shape)).view(shape)
    for coordinate in itertools.product(*map(range, mesh_shape)):
        local = whole
        for at, n, one in zip(coordinate, mesh_shape, placements, strict=True):
            if one.dim is not None:
                parts = [chunk(piece, n, at, one.dim) for piece in local.chunk(one.split_factor, one.dim)]
                local = torch.cat(parts, one.dim)
        one = facts(shape, mesh_shape, coordinate, placements)
        assert one.shape == tuple(local.shape)
        if local.numel():
            first = local.flatten()[0].item()
            assert one.index_in_whole((0,) * len(shape)) == tuple(map(int, np.unravel_index(first, shape)))


def chunk(piece, num, number, dim):
    """Return a chunk, of which torch makes no empty ones."""
    parts = piece.chunk(num, dim)
    return parts[number] if number < len(parts) else piece.narrow(dim, 0, 0)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (facts((64, 512), (16, 64), (0, 3), (cut(0), cut(1)), rank=3),
         "rank 3 of 1,024 holds rows 0–3 of 64, columns 24–31 of 512 (1/1,024)"),
        (facts((8, 8), (8, 2), (0, 1), (WHOLE, cut(0)), rank=1),
         "rank 1 of 16 holds rows 4–7 of 8 (1/2); the same on 8 ranks"),
        (facts((7, 3), (2,), (0,), (cut(0),), rank=0),
         "rank 0 of 2 holds rows 0–3 of 7 (12 of 21 elements)"),
        (facts((1,), (4,), (1,), (cut(0),), rank=1), "rank 1 of 4 holds none: empty on this rank"),
        (facts((4,), (4,), (1,), (PENDING,), rank=1), "a part of a sum that is not reduced yet"),
        (facts((4,), (2,), (1,), (cut(0),), rank=5), "rank 5, one of 2, holds elements 2–3 of 4 (1/2)"),
        (facts((8,), (2, 2), (1, 0), (cut(0), cut(0, 2)), rank=2), "rank 2 of 4 holds elements 4, 6 of 8 (1/4)"),
        (ShardFacts((2,), None, (cut(0),), (4,), (0,), rank=3), "rank 3 is none of the 2 that hold it"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_a_rank_holds(one, said):
    """With the same words for all shapes, and nothing of what is as one expects."""
    assert str(one) == said


def test_what_would_be_scattered_without_bound_is_not_told():
    """Of a factor that a file, or a program, may have made up."""
    assert indices_held((2**40,), (2,), (0,), (cut(0, 2**30),)) is None
    assert facts((4,), (2,), (1,), (cut(0, 2**30),)).held is not None


def test_a_placement_along_no_dimension_tells_no_indices():
    """As another library may note it."""
    facts = ShardFacts((2,), (0,), (Placement("S(7)", 7),), (4, 4), (2, 4), 0)
    assert indices_held((4, 4), (2,), (0,), facts.placements) is None
    assert str(facts) == "rank 0 of 2 holds 8 of 16 elements"
