"""What FSDP has gathered is copied, since it could not reshard what an array shares; whoever asks may share it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp
from tensornp.core.convert.plan import decide
from tensornp.core.convert.view_share_copy import MODES

GATHERED = dataclasses.replace(tnp.inspect(torch.zeros(2, 3)), _is_unsharded=True)
WHY = "copy: FSDP has gathered it, and could not reshard what an array shares"
HAZARD = "FSDP can no longer reshard this storage"


def test_the_default_copies_and_copy_false_shares_with_the_hazard():
    """The mode view asks for nothing, and copies; share is what was asked for, and its receipt says what that ends."""
    assert [decide(GATHERED, **MODES[mode]).mode for mode in MODES] == ["copy", "share", "copy"]
    assert decide(GATHERED).reason == decide(GATHERED, writeable=True).reason == WHY
    assert (decide(GATHERED).nbytes_copied, decide(GATHERED).code) == (24, "t.clone().numpy()")
    for writeable in (None, True):
        assert HAZARD in str(decide(GATHERED, copy=False, writeable=writeable))
        assert HAZARD not in str(decide(GATHERED, writeable=writeable))


def test_what_is_copied_anyhow_is_copied_for_its_own_reason():
    """On a GPU, or widened, nothing would have been shared; and an empty one has nothing to share."""
    elsewhere = dataclasses.replace(GATHERED, device=torch.device("cuda:0"))
    wide = dataclasses.replace(GATHERED, dtype=torch.bfloat16)
    empty = dataclasses.replace(GATHERED, shape=(0,), numel=0)
    for info in (elsewhere, wide, empty):
        assert decide(info) == decide(dataclasses.replace(info, _is_unsharded=False))
        assert decide(info, copy=True) == decide(dataclasses.replace(info, _is_unsharded=False), copy=True)


def unsharded(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return the gathered parameters of a model, and what leads into their storages besides."""
    weights = list(model.parameters())
    first = weights[0]
    return [*weights, first.detach(), first.data, first[1:], first.T, first.view(-1)[::2], first.data[0, 0]]


CONVERSIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "to_numpy": tnp.to_numpy,
    "writeable": lambda t: tnp.to_numpy(t, writeable=True),
    "read-only": lambda t: tnp.to_numpy(t, writeable=False),
    "in a container": lambda t: tnp.to_numpy({"a": [t]})["a"][0],
    "storage": lambda t: tnp.to_numpy(t.untyped_storage()),
    "weight": lambda t: tnp.weights({"w": t})["w"].to_numpy(),
    "a part of a weight": lambda t: tnp.weights({"w": t})["w"].to_numpy(...),
    "widget": lambda t: tnp.TensorWidget(t).array,
    "JAX": lambda t: pytest.importorskip("jax") and tnp.to_jax(t),
}


@pytest.mark.slow
@needs_fsdp
@pytest.mark.parametrize("name", CONVERSIONS)
@in_fork
def test_a_conversion_leaves_what_was_gathered_to_be_resharded(name):
    """Of a parameter and of its views, in each way that does not ask to share; the model reshards and computes."""
    rank = LoneRank()
    model = rank.gathered()
    expected = model(torch.ones(3, 7))
    for t in unsharded(model):
        known = t.detach().clone()
        assert tnp.inspect(t)._is_unsharded
        assert tnp.plan(t).reason == WHY
        array = CONVERSIONS[name](t)
        assert t.untyped_storage().resizable(), "the next reshard would raise"
        if name in ("to_numpy", "writeable", "read-only", "in a container", "weight", "widget", "JAX"):
            assert np.array_equal(np.asarray(array), known.numpy())
    for layer in model:
        layer.reshard()
    assert not any(tnp.inspect(t)._is_unsharded for t in model.parameters())
    assert model(torch.ones(3, 7)).shape == expected.shape


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_the_magic_copies_what_was_gathered_and_shares_it_when_told_to():
    """`%tonumpy -s` is a request; its receipt says what it ends, and that is true."""
    from gallery_child import shell

    model = LoneRank().gathered()
    ip = shell()
    ip.user_ns["p"] = model[0].weight
    ip.run_line_magic("tonumpy", "p")
    ip.run_line_magic("tonumpy", "-v p")
    assert model[0].weight.untyped_storage().resizable()
    assert HAZARD in str(tnp.plan(model[0].weight, copy=False))
    shared = ip.run_line_magic("tonumpy", "-s p")
    shared[0, 0] = 7
    assert model[0].weight[0, 0] == 7
    with pytest.raises(RuntimeError, match="not resizable"):
        model[0].reshard()


@needs_fsdp
@in_fork
def test_jax_shares_what_was_gathered_when_told_to():
    """By default it copies anyway; the receipt of sharing says what that ends."""
    pytest.importorskip("jax")
    gathered = LoneRank().gathered()
    weight = gathered[0].weight
    tnp.to_jax(weight, copy=False)
    assert not weight.untyped_storage().resizable()


@needs_fsdp
@in_fork
def test_other_tensors_share_as_before_where_there_is_a_sharded_model():
    """Plain ones, gradients, local shards, results: their storages are nobody's but their own."""
    rank = LoneRank()
    model, _ = rank.trained()
    gathered = rank.gathered()
    result = gathered(torch.ones(3, 7)).detach()
    copied = gathered[0].weight.detach().clone()
    local = next(model.parameters()).to_local().detach()
    for t in (torch.ones(3), torch.nn.Parameter(torch.ones(3)), torch.nn.Linear(2, 2).weight, result, copied, local):
        assert not tnp.inspect(t)._is_unsharded
        assert np.shares_memory(tnp.to_numpy(t), t.detach().numpy())


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_a_gathered_dtensor_is_copied_by_what_it_holds():
    """With tensor parallelism besides, the gathered parameter is a DTensor over the gathered storage."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, distribute_tensor

    rank = LoneRank()
    layer = torch.nn.Linear(4, 4, bias=False)
    layer.weight = torch.nn.Parameter(distribute_tensor(layer.weight.detach(), rank.square["tp"], [Replicate()]))
    fully_shard(layer, mesh=rank.square["dp"])
    layer.unshard()
    assert tnp.plan(layer.weight).reason == WHY
    assert tnp.to_numpy(layer.weight).shape == (4, 4)
    layer.reshard()


@needs_fsdp
@pytest.mark.parametrize("use_orig_params", [False, True])
@pytest.mark.filterwarnings("ignore")
@in_fork
def test_what_the_first_fsdp_has_gathered_is_copied_too(use_orig_params):
    """Its parameters are views of one flat parameter, between a forward and its backward."""
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    LoneRank()
    options = {
        "device_id": torch.device("cpu"),
        "use_orig_params": use_orig_params,
        "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP,
    }
    inner = FullyShardedDataParallel(torch.nn.Linear(4, 4), **options)
    model = FullyShardedDataParallel(torch.nn.Sequential(inner, torch.nn.Linear(4, 4)), **options)
    for _ in range(2):
        loss = model(torch.ones(2, 4)).sum()
        for linear in (inner.module, model.module[1]):
            for t in (linear.weight, linear.bias, linear.weight[0]):
                assert tnp.plan(t).reason == WHY
                tnp.to_numpy(t)
        loss.backward()
