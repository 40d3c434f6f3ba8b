"""Where elements of a sharded tensor are: by their indices in the whole, which one rank tells alone."""

from __future__ import annotations

import pytest
import torch
from child import in_fork, in_two_ranks
from lone_rank import LoneRank, distributed, needs_fsdp

import tensornp as tnp


@needs_fsdp
@pytest.mark.parametrize("number", range(4))
@in_fork
def test_indices_are_those_of_the_whole_on_each_rank(number):
    """Uneven, in two dimensions of a mesh, replicated in one, in a part of it."""
    from torch.distributed.tensor import Replicate, Shard

    rank = LoneRank(number)
    first, second = divmod(number, 2)
    for placements, shape, index in (
        ([Shard(0), Shard(1)], (8, 8), [4 * first, 4 * second]),
        ([Replicate(), Shard(1)], (8, 8), [0, 4 * second]),
        ([Shard(0), Shard(0)], (7, 3), [[0, 2, 4, 6][number], 0]),
        ([Shard(1), Replicate()], (3, 5), [0, 3 * first]),
    ):
        t = torch.distributed.tensor.empty(shape, device_mesh=rank.square, placements=placements)
        local = t.to_local().fill_(1)
        local.view(-1)[0] = torch.nan
        with rank.alone():
            found = tnp.locate(t)
            assert list(found.indices[0]) == index
            assert found.scope == f"local shard of rank {number}"
            assert tnp.compare(t, torch.nn.Parameter(t)).scope == found.scope
            assert tnp.inspect(t).shard.offsets == tuple(index)


@needs_fsdp
@in_fork
def test_rows_are_those_of_the_whole_under_two_kinds_of_sharding():
    """FSDP2 over tensor parallelism cuts what is cut already: `_StridedShard`, from left to right."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard

    rank = LoneRank(1)
    layer = torch.nn.Linear(4, 8, bias=False)
    layer.weight = torch.nn.Parameter(distributed(layer.weight.detach(), rank.square["tp"], [Shard(0)]))
    fully_shard(layer, mesh=rank.square["dp"])
    layer.weight.to_local().detach()[0, 3] = torch.inf
    with rank.alone():
        assert "_S" in str(layer.weight.placements[0])
        assert tnp.locate(layer.weight, "inf").indices == ((4, 3),)
        assert str(tnp.inspect(layer.weight).shard) == "rank 1 of 4 holds rows 4–5 of 8 (1/4)"


@needs_fsdp
@in_fork
def test_parts_of_other_elements_are_not_compared():
    """Two square tensors whose parts have one shape, of other columns and rows."""
    rank = LoneRank(1)
    from torch.distributed.tensor import Replicate, Shard

    one, other = (
        torch.distributed.tensor.ones(8, 8, device_mesh=rank.square, placements=placements)
        for placements in ([Replicate(), Shard(1)], [Shard(1), Replicate()])
    )
    with rank.alone(), pytest.raises(tnp.NoDataError, match=r"columns 4–7 of 8.*columns 0–3 of 8"):
        tnp.compare(one, other)


@in_two_ranks
def test_two_ranks_tell_indices_that_the_gathered_tensor_has(rank):
    """By the values that the whole has there; the other rank does not take part in asking."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    whole = torch.arange(21.0).view(7, 3)
    t = distribute_tensor(whole, init_device_mesh("cpu", (2,)), [Shard(0)])
    if rank == 1:
        found = tnp.locate(t, "max")
        assert found.indices == ((6, 2),)
        changed = tnp.compare(t, t.detach().clone().mul_(2))
        assert changed.first_difference == (4, 0)


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_statistics_name_planes_and_indices_of_the_whole():
    """The plane with the NaN is the one that is drawn, by its place in the whole; so is each index of an axis."""
    from torch.distributed.tensor import DTensor, Shard

    from tensornp.core.summary.options import DisplayOptions
    from tensornp.core.summary.stats import summarize_stats
    from tensornp.render.values import stats_tables

    rank = LoneRank(1)
    local = torch.arange(6400.0).view(4, 40, 40)
    local[2, 3, 7] = torch.nan
    t = DTensor.from_local(local, rank.mesh, [Shard(0)], run_check=False)
    with rank.alone():
        found = summarize_stats(t, DisplayOptions(), axis=-3)
        assert found.picture is not None
        assert found.picture.title == "plane [6] of 16"
        table = list(stats_tables(found))[-1]
        assert [row.cells[0] for row in table.rows] == ["6", "7", "5", "4"]
        plane = tnp.plot(t, index=5).axes[1]
        assert plane.get_title() == "plane [5] of 16"
        with pytest.raises(
            tnp.errors.BadRequestError, match=r"the plane at \[3\] is not on this rank: rank 1 of 4 holds"
        ):
            tnp.plot(t, index=3)
        with pytest.raises(tnp.errors.BadRequestError, match=r"no plane of shape \(16, 40, 40\)"):
            tnp.plot(t, index=16)
