"""What FSDP has gathered is copied, since it could not reshard what an array shares; whoever asks may share it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, distributed, needs_fsdp

import tensornp as tnp
from tensornp.core.convert.plan import MODES, decide

GATHERED = dataclasses.replace(tnp.inspect(torch.zeros(2, 3)), _is_unsharded=True)
WHY = "copy: FSDP has gathered it, and could not reshard what an array shares"
HAZARD = "FSDP can no longer reshard this storage"


def test_the_default_copies_and_copy_false_shares_with_the_hazard():
    """The mode view asks for nothing, and copies; share is what was asked for, and its receipt says what that ends."""
    assert [decide(GATHERED, **MODES[mode]).shares_memory for mode in MODES] == [False, True, False]
    assert decide(GATHERED).reason == decide(GATHERED, writeable=True).reason == WHY
    assert (decide(GATHERED).nbytes_copied, decide(GATHERED).code) == (24, "t.clone().numpy()")
    for writeable in (None, True):
        assert HAZARD in str(decide(GATHERED, copy=False, writeable=writeable))
        assert HAZARD not in str(decide(GATHERED, writeable=writeable))


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
def test_a_gathered_dtensor_is_copied_by_what_it_holds():
    """With tensor parallelism besides, the gathered parameter is a DTensor over the gathered storage."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate

    rank = LoneRank()
    layer = torch.nn.Linear(4, 4, bias=False)
    layer.weight = torch.nn.Parameter(distributed(layer.weight.detach(), rank.square["tp"], [Replicate()]))
    fully_shard(layer, mesh=rank.square["dp"])
    layer.unshard()
    assert tnp.plan(layer.weight).reason == WHY
    assert tnp.to_numpy(layer.weight).shape == (4, 4)
    layer.reshard()
