"""`shard="full"` gathers a tensor from all ranks, or says who is missing and leaves the groups of the job whole."""

from __future__ import annotations

import _thread
import datetime
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from child import in_fork, in_ranks, in_two_ranks
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp
from tensornp.core.convert import gathering, meeting

LIMIT = datetime.timedelta(seconds=20)
"""Longer than one rank may wait for another one that does something else."""


@contextmanager
def untouched() -> Iterator[None]:
    """Check that the default group was not used, that there is no other one, and that it works."""

    def facts() -> Any:
        world: Any = dist.distributed_c10d._world
        return dist.group.WORLD._get_sequence_number_for_group(), len(world.pg_map), world.group_count

    before = facts()
    yield
    assert facts() == before
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total == dist.get_world_size()


def one_of(rank: int, who: int) -> bool:
    """Return whether this rank is the one that acts, while the others wait outside of any collective: call `done`."""
    if rank != who:
        dist.distributed_c10d._get_default_store().wait(["done"], LIMIT)
    return rank == who


def done() -> None:
    """Let the others go on."""
    dist.distributed_c10d._get_default_store().set("done", "yes")


def tensors() -> dict[str, Any]:
    """Return DTensors of two ranks: of each placement, even and uneven, in one dimension and in two."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    mesh, flat = init_device_mesh("cpu", (2,)), init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
    whole = torch.arange(24.0).view(6, 4)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    local = whole + dist.get_rank()
    return {
        "sharded": sharded,
        "by columns": distribute_tensor(whole, mesh, [Shard(1)]),
        "uneven": distribute_tensor(torch.arange(21.0).view(7, 3), mesh, [Shard(0)]),
        "uneven columns": distribute_tensor(torch.arange(21).view(3, 7), mesh, [Shard(1)]),
        "empty on one": distribute_tensor(torch.ones(1), mesh, [Shard(0)]),
        "empty": distribute_tensor(torch.ones(0, 3), mesh, [Shard(0)]),
        "replicated": distribute_tensor(whole, mesh, [Replicate()]),
        "in two dimensions": distribute_tensor(whole, flat, [Shard(0), Shard(1)]),
        "bfloat16": sharded.to(torch.bfloat16),
        "float8": DTensor.from_local(local.to(torch.float8_e4m3fn), mesh, [Shard(1)]),
        "complex, conjugated": distribute_tensor(whole + 1j, mesh, [Shard(0)]).conj(),
        "bool": sharded > 5,
        "transposed": sharded.T,
        "result": sharded.clone().requires_grad_() * 2,
        "parameter": torch.nn.Parameter(sharded),
        "number": DTensor.from_local(torch.tensor(2.0 + dist.get_rank()), mesh, [Partial()]),
        **{
            f"partial {op}": DTensor.from_local(local.clone(), mesh, [Partial(op)])
            for op in ("sum", "avg", "product", "max", "min")
        },
    }


def same(array: Any, expected: torch.Tensor) -> bool:
    """Return whether an array has the values of a tensor, bit for bit where NumPy has the dtype."""
    known = tnp.to_numpy(expected.detach(), copy=True)
    return array.dtype == known.dtype and array.shape == known.shape and array.tobytes() == known.tobytes()


@needs_fsdp
@in_two_ranks
def test_the_whole_is_what_torch_gathers(rank):
    """Of each placement, in new memory, as the receipt has said, by a group that torch does not know of."""
    for name, t in tensors().items():
        # Which gloo does not send by itself.
        is_short = t.dtype == torch.float8_e4m3fn
        expected = (t.float() if is_short else t.detach()).full_tensor().to(t.dtype).resolve_conj()
        with untouched():
            plan = tnp.plan(t, shard="full")
            array = tnp.to_numpy(t, shard="full")
        assert same(array, expected), name
        assert (array.dtype, array.flags.writeable) == (plan.dtype, plan.writeable), name
        if name != "replicated":
            assert plan.nbytes_copied == array.nbytes
            assert not plan.shares_memory
            assert array.flags.writeable


@needs_fsdp
@in_two_ranks
def test_the_receipt_tells_beforehand_what_each_rank_takes_and_sends(rank):
    """And is made without the others."""
    t = tensors()["uneven"]
    plan = tnp.plan(t, shard="full", dtype="float64")
    sent = f"rank {rank} sends {(48, 36)[rank]} bytes"
    assert plan.reason == f"copy: gathered from 2 ranks, 168 bytes of new memory on each; {sent}"
    assert plan.code == "t.full_tensor().numpy().astype(np.float64)"
    with pytest.raises(tnp.CopyRequiredError, match="a float32 tensor in parts on several ranks cannot share memory"):
        tnp.plan(t, shard="full", copy=False)
    if one_of(rank, 0):
        tnp.plan(t, shard="full")
        done()
    array = tnp.to_numpy(t, shard="full", dtype="float64", writeable=False)
    assert array.dtype == np.float64
    assert not array.flags.writeable


@needs_fsdp
@in_two_ranks
def test_an_average_of_whole_numbers_is_refused(rank):
    """It would be cut to them, as the plan says before; that of what each rank has as fractions is gathered."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial

    mesh = init_device_mesh("cpu", (2,))
    own = torch.full((2,), rank + 1)
    for dtype in (torch.int64, torch.uint8, torch.bool):
        t = DTensor.from_local(own.to(dtype), mesh, [Partial("avg")], run_check=False)
        for refused in (tnp.plan, tnp.to_numpy):
            with pytest.raises(
                tnp.UnsupportedTensorError, match=r"may be no whole number; gather one made of t\.to_local"
            ):
                refused(t, shard="full")
    t = DTensor.from_local(own.double(), mesh, [Partial("avg")], run_check=False)
    assert tnp.to_numpy(t, shard="full").tolist() == [1.5, 1.5]


@needs_fsdp
@in_two_ranks
def test_a_rank_that_does_not_come_is_named_and_the_group_stays_whole(rank):
    """Within 4 seconds; afterwards all can join, whoever came alone before."""
    t = tensors()["sharded"]
    expected = t.full_tensor()
    store = dist.distributed_c10d._get_default_store()
    for who in (0, 1, 0):
        with untouched():
            if one_of(rank, who):
                start = time.monotonic()
                with pytest.raises(tnp.RanksError, match=rf"^rank {1 - who} did not join; run this line on all ranks$"):
                    tnp.to_numpy(t, shard="full")
                assert time.monotonic() - start < 4
                done()
        dist.barrier()
        store.delete_key("done")
        dist.barrier()
    with untouched():
        assert same(tnp.to_numpy(t, shard="full"), expected)


@needs_fsdp
@in_two_ranks
def test_a_rank_that_comes_late_is_waited_for(rank):
    """For less than two seconds."""
    t = tensors()["sharded"]
    expected = t.full_tensor()
    time.sleep(rank)
    with untouched():
        assert same(tnp.to_numpy(t, shard="full"), expected)


@needs_fsdp
@in_two_ranks
def test_an_error_of_one_rank_is_told_on_each(rank):
    """With the names of both; the one that has it raises its own."""
    t = tensors()["sharded"]
    for argument, value, kind in (
        ("dtype", "nonsense", "BadRequestError"),
        ("max_nbytes", 3, "TooLargeError"),
        ("copy", False, "CopyRequiredError"),
    ):
        with untouched():
            if rank == 1:
                with pytest.raises(getattr(tnp.errors, kind)):
                    tnp.to_numpy(t, shard="full", **{argument: value})
            else:
                said = rf"^rank 1 has failed with {kind}: .*; nothing was gathered on rank 0 either$"
                with pytest.raises(tnp.RanksError, match=said):
                    tnp.to_numpy(t, shard="full")


@needs_fsdp
@in_two_ranks
def test_ranks_that_gather_different_tensors_are_told_so(rank):
    """Nothing is put together of what does not belong together."""
    every = tensors()
    with untouched(), pytest.raises(tnp.RanksError, match=r"take the same tensor on all ranks") as error:
        tnp.to_numpy(every[("sharded", "uneven")[rank]], shard="full")
    for said in ("float32 (6, 4), placed S(0) on (2,)", "float32 (7, 3), placed S(0) on (2,)", "rank 0", "rank 1"):
        assert said in str(error.value)


@needs_fsdp
@in_two_ranks
def test_a_rank_that_fails_in_the_middle_ends_the_others_at_once(rank):
    """They do not wait for its messages, and say what it said; the group of the job is not used."""
    t = tensors()["sharded"]
    expected = t.full_tensor()
    part_here = gathering._part_here

    def fail(_: Any) -> torch.Tensor:
        raise MemoryError("no room")

    if rank == 1:
        gathering._part_here = fail
    start = time.monotonic()
    with untouched():
        kind: type[Exception] = MemoryError if rank == 1 else tnp.RanksError
        said = "^rank 1 has failed with MemoryError: no room; nothing was gathered on rank 0$"
        with pytest.raises(kind, match="no room" if rank == 1 else said) as error:
            tnp.to_numpy(t, shard="full")
        assert time.monotonic() - start < 4
    # While the frames of that error are kept.
    assert error.value.__traceback__ is not None
    gathering._part_here = part_here
    assert same(tnp.to_numpy(t, shard="full"), expected)


@needs_fsdp
@in_two_ranks
def test_models_and_weights_are_gathered_together(rank):
    """A state dict of FSDP2 with a plain buffer in it, a parameter, a weight of an explorer and a part of it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.BatchNorm1d(3))
    known = {name: t.detach().clone() for name, t in model.state_dict().items()}
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    with untouched():
        arrays = tnp.to_numpy(model.state_dict(), shard="full")
    assert arrays.keys() == known.keys()
    assert all(same(arrays[name], known[name]) for name in known)
    weight, entry = known["0.weight"], tnp.weights(model)["0.weight"]
    with untouched():
        assert same(tnp.to_numpy(model[0].weight, shard="full"), weight)
        assert same(entry.to_numpy(shard="full"), weight)
        assert same(tnp.to_numpy(entry, shard="full", max_nbytes=60), weight)
        assert np.array_equal(entry.to_numpy((1, slice(None, None, -2)), shard="full"), weight.numpy()[1, ::-2])
        assert entry.plan(1, shard="full").nbytes_copied == 60
    with pytest.raises(tnp.TooLargeError):
        tnp.to_numpy(model.state_dict(), shard="full", max_nbytes=60)
    assert torch.equal(model(torch.ones(2, 5)), model(torch.ones(2, 5)))


@needs_fsdp
@in_ranks(4)
def test_a_mesh_of_several_dimensions_is_gathered(rank):
    """Replicated in one, strided, in a part of the mesh only, by two placements that are to be reduced."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole, local = torch.arange(35.0).view(7, 5), torch.arange(10.0).view(2, 5) ** (rank + 1)
    layer = torch.nn.Linear(5, 7, bias=False)
    layer.weight = torch.nn.Parameter(distribute_tensor(whole, square["tp"], [Shard(0)]))
    fully_shard(layer, mesh=square["dp"])
    every = [
        distribute_tensor(whole, square, [Shard(0), Shard(1)]),
        distribute_tensor(whole, square, [Shard(0), Shard(0)]),
        distribute_tensor(whole, square, [Replicate(), Shard(0)]),
        distribute_tensor(whole, square, [Shard(1), Replicate()]),
        distribute_tensor(whole, square["tp"], [Shard(0)]),
        DTensor.from_local(local, square, [Partial(), Shard(0)]),
        DTensor.from_local(local, square, [Partial("max"), Partial("max")]),
        layer.weight,
    ]
    for t in every:
        expected = t.detach().full_tensor()
        with untouched():
            assert same(tnp.to_numpy(t, shard="full"), expected), t.placements
    if rank == 3:
        dist.distributed_c10d._get_default_store().wait(["done"], LIMIT)
    else:
        if rank == 0:
            threading.Timer(1, _thread.interrupt_main).start()
        kind = KeyboardInterrupt if rank == 0 else tnp.RanksError
        with pytest.raises(kind, match="" if rank == 0 else "rank 0 was stopped by KeyboardInterrupt"):
            tnp.to_numpy(every[0], shard="full")
        done()
    assert same(tnp.to_numpy(every[1], shard="full"), whole)


@needs_fsdp
@in_fork
def test_without_others_the_whole_is_refused_in_our_words():
    """A group that nobody answers, and none at all; what is whole here needs nobody."""
    rank = LoneRank()
    every = rank.tensors()
    with rank.alone():
        for t in every.values():
            tnp.plan(t, shard="full")
        with pytest.raises(tnp.RanksError, match="the ranks cannot meet"):
            tnp.to_numpy(every["sharded"], shard="full")
        assert tnp.to_numpy(every["replicated"], shard="full").shape == (6, 4)
    with rank.destroyed():
        assert tnp.plan(every["sharded"], shard="full").nbytes_copied == 384
        with pytest.raises(tnp.RanksError, match="no group of processes, or it was destroyed"):
            tnp.to_numpy(every["sharded"], shard="full")


def test_what_is_whole_is_converted_as_ever():
    """Plain tensors, containers of them, and objects that are no tensors."""
    t = torch.arange(3.0)
    assert np.shares_memory(tnp.to_numpy(t, shard="full"), t.numpy())
    assert np.shares_memory(tnp.to_numpy([t], shard="full")[0], t.numpy())
    with pytest.raises(tnp.NotATensorError):
        tnp.to_numpy(3, shard="full")


def test_two_threads_do_not_gather_at_once():
    """On another rank nobody could tell which has come."""
    with gathering._ONE_AT_A_TIME, pytest.raises(tnp.RanksError, match="another thread of this process gathers"):
        gathering.gathered([])
    assert gathering.gathered([]) == []


def test_a_store_that_does_not_answer_is_told(monkeypatch):
    """As where the process of it was stopped."""
    go_on = threading.Event()

    class Stopped:
        def check(self, keys: list[str]) -> bool:
            return go_on.wait(60)

    monkeypatch.setattr(meeting, "WAIT_S", 0.01)
    try:
        with pytest.raises(tnp.RanksError, match="does not answer; has rank 0 stopped"):
            meeting._check_that_it_answers(Stopped())
    finally:
        go_on.set()
