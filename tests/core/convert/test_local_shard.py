"""`shard="local"` gives the part that this rank holds, as a plain tensor is given, and asks no other rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp
from tensornp.core.convert.plan import MODES


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_the_local_shard_is_converted_as_a_plain_tensor_is():
    """In each mode, with each dtype: the array, its memory and its receipt, which says whose shard it is."""
    rank = LoneRank()
    tensors = rank.tensors()
    with rank.alone():
        for name, t in tensors.items():
            if name == "partial":
                continue
            local = t.detach().to_local()
            for mode, dtype in ((one, dtype) for one in MODES.values() for dtype in (None, "float16", "bfloat16")):
                asked: dict[str, Any] = {**mode, "dtype": dtype}
                try:
                    expected = tnp.to_numpy(local, **asked)
                except tnp.CopyRequiredError:
                    with pytest.raises(tnp.CopyRequiredError):
                        tnp.to_numpy(t, shard="local", **asked)
                    continue
                array = tnp.to_numpy(t, shard="local", **asked)
                assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
                assert array.tobytes() == expected.tobytes()
                assert array.flags.writeable == expected.flags.writeable
                plan, of_local = tnp.plan(t, shard="local", **asked), tnp.plan(local, **asked)
                assert np.shares_memory(array, expected) == plan.shares_memory == of_local.shares_memory
                assert plan.reason == f"{of_local.reason}; local shard of rank 1"
                assert plan.nbytes_copied == of_local.nbytes_copied
                made = eval(
                    plan.code, {"t": t, "np": np, "torch": torch, "ml_dtypes": pytest.importorskip("ml_dtypes")}
                )
                assert (made.dtype, made.tobytes()) == (array.dtype, array.tobytes())


@needs_fsdp
@in_fork
def test_a_write_to_a_shared_local_shard_is_one_to_the_tensor():
    """In both directions."""
    sharded = LoneRank().tensors()["sharded"]
    array = tnp.to_numpy(sharded, shard="local", copy=False, writeable=True)
    array[0, 0] = 7
    assert sharded.to_local()[0, 0] == 7
    sharded.to_local()[0, 1] = 8
    assert array[0, 1] == 8


@needs_fsdp
@in_fork
def test_a_part_of_a_sum_is_no_value_locally_either():
    """As for statistics: the number that this rank has is none of the tensor's."""
    partial = LoneRank().tensors()["partial"]
    for ask in (tnp.plan, tnp.to_numpy, tnp.weights({"w": partial})["w"].to_numpy):
        with pytest.raises(tnp.NoDataError, match="a part of a sum that is not reduced yet, and no value"):
            ask(partial if ask in (tnp.plan, tnp.to_numpy) else ..., shard="local")


def test_what_is_not_spread_over_ranks_is_all_of_it_here():
    """A plain tensor is converted as ever, alone or beside sharded ones; another word is refused."""
    t = torch.arange(3.0)
    assert np.shares_memory(tnp.to_numpy(t, shard="local"), t.numpy())
    assert tnp.plan(t, shard="local") == tnp.plan(t)
    entry = tnp.weights({"w": t})["w"]
    assert entry.plan(shard="local") == entry.plan()
    for ask in (tnp.to_numpy, tnp.plan, tnp.weights):
        with pytest.raises(tnp.errors.BadRequestError, match="shard must be"):
            ask({"w": t})["w"].to_numpy(shard="here") if ask is tnp.weights else ask(t, shard="here")


@needs_fsdp
@in_fork
def test_local_shards_are_taken_out_of_containers_and_weights():
    """With plain tensors beside them; an index of a weight counts in the part, and reads nothing else."""
    rank = LoneRank()
    t = rank.tensors()["in two dimensions"]
    local = t.to_local()
    with rank.alone():
        arrays = tnp.to_numpy({"t": [t], "plain": torch.ones(2)}, shard="local")
        assert np.array_equal(arrays["t"][0], local.numpy())
        assert arrays["plain"].tolist() == [1, 1]
        entry = tnp.weights({"w": t})["w"]
        assert np.array_equal(tnp.to_numpy(entry, shard="local"), local.numpy())
        assert np.array_equal(tnp.to_numpy(entry, shard="local", max_nbytes=0), local.numpy())
        part = entry.to_numpy((1, slice(None, None, -2)), shard="local")
        assert np.array_equal(part, local.numpy()[1, ::-2])
        assert np.shares_memory(part, local.numpy())
        assert entry.plan(1, shard="local").reason.endswith("; local shard of rank 1")
        with pytest.raises(tnp.errors.BadRequestError, match="axis 0 has 4 indices"):
            entry.to_numpy(5, shard="local")
        with pytest.raises(tnp.TooLargeError):
            tnp.to_numpy(entry, copy=True, shard="local", max_nbytes=63)
        with pytest.raises(tnp.NoDataError):
            entry.to_numpy()
