"""What FSDP has flattened, and what it has gathered for now, is told as such: on cards, and of the weights."""

from __future__ import annotations

import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp


@needs_fsdp
@in_fork
def test_what_fsdp2_has_gathered_is_told_until_it_is_sharded_again():
    """Of each parameter by itself; what else there is says nothing of it."""
    rank = LoneRank()
    model, other = rank.model(), torch.nn.Linear(7, 6)
    model[0].unshard()
    with rank.alone():
        notes = {name: entry.note for name, entry in tnp.weights(model).items()}
        assert [name for name, note in notes.items() if "gathered just now" in note] == ["0.weight", "0.bias"]
        assert notes["0.weight"].endswith("gathered just now")
        assert "elements, " in notes["1.weight"]
        assert notes["1.weight"].endswith("on this rank")
        assert " | gathered just now" in tnp.card(model[0].weight).text
        assert tnp.inspect(model[0].weight)._spread == ("gathered just now",)
        for one in (model[1].weight, other.weight, torch.ones(3)):
            assert "gathered" not in tnp.card(one).text.splitlines()[0]
        assert "gathered just now" in tnp.weights(dict(model.named_parameters()))["0.bias"].note
        assert {entry.note for entry in tnp.weights(other).values()} == {""}
    model[0].reshard()
    assert "gathered" not in str(tnp.card(tnp.weights(model)))
    assert "gathered" not in tnp.card(model[0].weight).text


@needs_fsdp
@pytest.mark.filterwarnings("ignore")
@in_fork
def test_a_flat_parameter_is_told_by_what_it_is_made_of():
    """By the names and shapes that FSDP1 has noted on it, in a card and in the notes of a weight; a few of many."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    rank = LoneRank()
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2), torch.nn.Linear(2, 1))
    said = "flat parameter of 0.weight (4, 4), 0.bias (4,), 1.weight (2, 4), 1.bias (2,), 2 more"
    model = FullyShardedDataParallel(layers, device_id=torch.device("cpu"))
    (flat,) = model.parameters()
    with rank.alone():
        assert f" | {said}" in tnp.card(flat).text
        assert tnp.inspect(flat)._spread == (said,)
        ((_, entry),) = ((name, one) for name, one in tnp.weights(model).items() if one.kind == "parameter")
        assert entry.note.startswith(said)
        assert tnp.to_numpy(flat).shape == tuple(flat.shape)
    flat._fqns, flat._shapes = object(), [object()]
    assert tnp.inspect(flat)._spread == ("flat parameter",)


@needs_fsdp
@pytest.mark.filterwarnings("ignore")
@in_fork
def test_parameters_in_a_flat_one_are_told_to_be_parts_of_it():
    """Where the names of the model stay."""
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    rank = LoneRank()
    options = {"device_id": torch.device("cpu"), "use_orig_params": True}
    model = FullyShardedDataParallel(torch.nn.Linear(4, 4), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, **options)
    with rank.alone():
        weight, bias = (tnp.weights(model)[f"_fsdp_wrapped_module.{name}"] for name in ("weight", "bias"))
        assert weight.note.startswith("part of a flat parameter")
        assert bias.note.startswith("part of a flat parameter")
        assert "gathered" not in weight.note + bias.note
    # Of the outermost one, all stay gathered until the backward.
    loss = model(torch.ones(2, 4)).sum()
    with rank.alone():
        assert "gathered just now" in tnp.card(model.module.weight).text
        assert "gathered just now" in tnp.weights(model)["_fsdp_wrapped_module.weight"].note
    loss.backward()
    assert "gathered just now" not in tnp.card(model.module.weight).text
