"""The weights of a sharded model: one count of parameters wherever it is told, and what this rank holds beside it."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp

SIZES = [(6, 7), (6,), (5, 6), (5,), (5,), (5,)]
"""Of the parameters of the model."""
NUM_PARAMETERS = sum(map(math.prod, SIZES))


def heading(obj: Any) -> str:
    return next(line for line in str(tnp.card(obj)).splitlines() if " · " in line)


def held_here(model: torch.nn.Module) -> int:
    """Return how many elements of its parameters this process holds."""
    return sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in model.parameters())


@needs_fsdp
@pytest.mark.parametrize("number", range(4))
@in_fork
def test_a_sharded_model_tells_the_parameters_of_all_ranks_and_its_own(number):
    """On each rank, the last of which holds less; in the card, in the totals, and in what the explorer says."""
    model = LoneRank(number).model()
    explorer, here = tnp.weights(model), held_here(model)
    assert explorer.totals.parameters == NUM_PARAMETERS == 93
    stored = f"{here} elements stored · " if here else ""
    assert f"93 parameters · {stored}" in heading(model)
    assert re.search(r"\d bytes on this rank", heading(model))
    for entry, size in zip(explorer.values(), SIZES, strict=True):
        assert (entry.shape, entry.nbytes + entry._nbytes_elsewhere) == (size, 4 * math.prod(size))
    assert sum(entry.nbytes for entry in explorer.values()) == 4 * here


@needs_fsdp
@in_fork
def test_what_no_rank_holds_is_said_to_be_on_no_rank():
    """A model on the meta device, as FSDP2 is usually started, and a part that was freed: nothing can be gathered."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Shard

    rank = LoneRank()
    with torch.device("meta"):
        model = torch.nn.Linear(8, 16)
    fully_shard(model, mesh=rank.mesh)
    part = torch.ones(3, 4)
    freed = DTensor.from_local(part, rank.mesh, [Shard(0)], run_check=False)
    part.untyped_storage().resize_(0)
    for tensor, state, said in (
        (model.weight, "meta", "a meta tensor has"),
        (freed, "freed", "it was freed or shrunk"),
    ):
        assert tnp.inspect(tensor).data_state == state
        assert tnp.inspect(tensor)._numel_elsewhere == 0
        entry = tnp.weights({"w": tensor})["w"]
        calls = (lambda s, t=tensor: tnp.to_numpy(t, shard=s), lambda s, e=entry: e.to_numpy(shard=s))
        for shard in (None, "local", "full"):
            for call, told in zip(calls, (said, "'w' has no values to read: "), strict=True):
                with pytest.raises(tnp.NoDataError, match=told) as caught:
                    call(shard)
                assert "to_local" not in str(caught.value) and "full" not in str(caught.value)
        assert entry.note == "DTensor, S(0)"
        assert "on this rank" not in f"{tnp.card(tensor)} {tnp.card(tnp.weights({'w': tensor}))}"
    assert "144 parameters · would take 576 bytes" in heading(model)


@needs_fsdp
@in_fork
def test_a_part_is_not_compared_with_a_whole():
    """Not with one of its own shape either: its elements are others than those of the tensor that it is called."""
    rank = LoneRank(1)
    sharded = rank.tensors()["sharded"]
    local = sharded.to_local()
    with rank.alone():
        for whole in (torch.zeros(sharded.shape), local.clone()):
            for pair in ((sharded, whole), (whole, sharded)):
                with pytest.raises(
                    tnp.NoDataError,
                    match=r"local shard of rank 1; .*compare t\.full_tensor",
                ):
                    tnp.compare(*pair)
        assert tnp.compare(sharded, sharded).scope == "local shard of rank 1"
        assert tnp.compare(local, local.clone()).same_bits


@needs_fsdp
@in_fork
def test_a_part_of_a_sum_is_no_value_and_no_advice_converts_it():
    """Nor is one listed as if there were values of it on this rank."""
    rank = LoneRank()
    partial = rank.tensors()["partial"]
    with rank.alone():
        for said in (str(tnp.card(partial)), str(tnp.card(tnp.weights({"w": partial})))):
            assert "a part of a sum that is not reduced yet, and no value" in said
            assert "to_local" not in said
        for refused in (tnp.to_numpy, tnp.stats, tnp.locate, tnp.plan, lambda t: tnp.compare(t, t)):
            with pytest.raises(tnp.NoDataError, match="no value; take"):
                refused(partial)
        with pytest.raises(tnp.NoDataError) as told:
            tnp.weights({"w": partial})["w"].to_numpy()
        assert "to_local" not in str(told.value)
        assert tnp.inspect(partial).shard.pending


@needs_fsdp
@in_fork
def test_two_sharded_models_are_compared_by_what_this_rank_holds():
    """The heading says so once; indices are those of the whole, and what a sum is still to be made of is left out."""
    rank = LoneRank(1)
    model, other, partial = rank.model(), rank.model(), {"w": rank.tensors()["partial"]}
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        b.to_local().detach().copy_(a.to_local().detach())
    with rank.alone():
        assert tnp.compare(model, other).same_bits
        other[0].weight.to_local().detach()[1, 2] += 1
        found = tnp.compare(model, other)
        assert (len(found), found.failed, found.equal) == (6, {}, False)
        assert found.first_difference["0.weight"] == (3, 2)
        assert str(tnp.card(found)).count("local shards of rank 1") == 1
        assert not tnp.compare(model.state_dict(), other.state_dict())["0.weight"].equal
        assert tnp.compare(tnp.weights(model)["0.bias"], tnp.weights(other)["0.bias"]).equal
        assert "w" in tnp.compare(partial, partial).failed


@needs_fsdp
@in_fork
def test_what_fsdp2_has_gathered_is_told_until_it_is_sharded_again():
    """Of each parameter by itself; what else there is says nothing of it."""
    rank = LoneRank()
    model, other = rank.model(), torch.nn.Linear(7, 6)
    model[0].unshard()
    with rank.alone():
        assert tnp.weights(model)["1.weight"].note.endswith("on this rank")
        assert " | gathered just now" in tnp.card(model[0].weight).text
        for one in (model[1].weight, other.weight, torch.ones(3)):
            assert "gathered" not in tnp.card(one).text.splitlines()[0]
    model[0].reshard()
    assert "gathered" not in tnp.card(model[0].weight).text
