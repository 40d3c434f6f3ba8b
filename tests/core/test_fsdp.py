"""Sharded parameters: a display on one rank needs no other, and training goes on as if nobody had looked."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
from child import in_two_ranks
from display import display
from older import since

import tensornp as tnp

LIMIT = datetime.timedelta(seconds=100)
"""Longer than any collective may wait for the other rank."""


class Layer(torch.nn.Module):
    """A linear layer that has its weight looked at while FSDP has it gathered."""

    def __init__(self, look: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8) / 3)
        self.look = look

    def forward(self, x):
        self.look(self.weight)
        y = x @ self.weight
        self.look(y)
        return y.tanh()


def train(look_inside: Callable[[torch.Tensor], object], look_outside: Callable[[Any], object]) -> list[str]:
    """Return the losses of some steps, bit for bit, of a model that is sharded over the ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(Layer(look_inside), Layer(look_inside), Layer(look_inside))
    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(4, 8) + dist.get_rank()).square().mean()
        loss.backward()
        look_outside(model)
        for parameter in model.parameters():
            look_outside(parameter)
            look_outside(parameter.grad)
        optimizer.step()
        for parameter in model.parameters():
            look_outside(optimizer.state[parameter]["exp_avg"])
        optimizer.zero_grad()
        losses.append(loss.item().hex())
    return losses


def no_look(obj: Any) -> None:
    """Do nothing."""


def look(obj: Any) -> None:
    """Do all that only looks, at a tensor or at a model."""
    if isinstance(obj, torch.nn.Module):
        look_at_weights(tnp.weights(obj))
    else:
        look_at_tensor(obj)


def look_at_weights(explorer: Any) -> None:
    """Ask each weight how a part of it would become an array, and all of them for their figures."""
    explorer.scan()
    for entry in explorer.values():
        for index in (0, (..., 0), slice(1), ...):
            with suppress(tnp.NoDataError):
                entry.plan(index)


def look_at_tensor(t: torch.Tensor) -> None:
    """Ask for its metadata, and show it."""
    tnp.inspect(t)
    assert "Error" not in display(t)


def convert(t: torch.Tensor) -> None:
    """Convert it in each way that does not ask to share its memory."""
    tnp.to_numpy(t)
    tnp.to_numpy({"t": t[0]}, writeable=True)
    _ = tnp.TensorWidget(t).array


def look_on_rank_0(obj: Any) -> None:
    """Look where the other rank does not."""
    if dist.get_rank() == 0:
        look(obj)


@pytest.mark.slow
@since("2.8", "FSDP2 is tried on a CPU")
@in_two_ranks
def test_training_goes_on_bit_for_bit_while_parameters_are_shown(rank):
    """Gathered or sharded, on all ranks or on one; a stray `.numpy()` at the same place ends the training."""
    expected = train(no_look, no_look)
    assert len(set(expected)) == 4
    assert train(look, look) == expected
    assert train(look_on_rank_0, look_on_rank_0) == expected
    assert train(convert, no_look) == expected
    with pytest.raises(RuntimeError, match="not resizable"):
        train(lambda t: t.detach().numpy(), no_look)


def alone(rank: int, look: Callable[[], None]) -> None:
    """Run `look` on rank 0 while rank 1 waits outside of any collective, and check that it began none."""
    store = dist.distributed_c10d._get_default_store()
    before = dist.group.WORLD._get_sequence_number_for_group()
    if rank == 0:
        look()
        store.set("looked", "yes")
    else:
        store.wait(["looked"], LIMIT)
    assert dist.group.WORLD._get_sequence_number_for_group() == before
    dist.barrier()
    store.delete_key("looked")
    dist.barrier()


@pytest.mark.slow
@in_two_ranks
def test_one_rank_shows_a_dtensor_alone(rank):
    """Sharded, partial or replicated, with grad or without: no collective is begun, so the other rank may sleep."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    whole = torch.arange(24.0).view(6, 4)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    kinds = [
        sharded,
        distribute_tensor(torch.arange(5000.0), mesh, [Shard(0)]),
        distribute_tensor(torch.arange(3.0), mesh, [Shard(0)]),
        distribute_tensor(whole, mesh, [Replicate()]),
        DTensor.from_local(whole, mesh, [Partial()]),
        torch.nn.Parameter(sharded),
        sharded.clone().requires_grad_() * 2,
        sharded.to(torch.bfloat16),
        sharded.T,
    ]

    def look_at_all() -> None:
        for t in kinds:
            look(t)
            for convert in (tnp.plan, partial(tnp.plan, shard="full"), partial(tnp.to_numpy, shard="local")):
                with suppress(tnp.TensornpError):
                    convert(t)

    alone(rank, look_at_all)
    assert torch.equal(sharded.full_tensor(), whole)


@in_two_ranks
def test_a_pending_collective_is_not_waited_for(rank):
    """The other rank has not joined yet, and may never; once it has, the result is right."""
    from torch.distributed import _functional_collectives as collectives

    def begin() -> torch.Tensor:
        return collectives.all_reduce(torch.ones(3) + rank, "sum", dist.group.WORLD)

    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        pending = begin()
        assert type(pending).__name__ == "AsyncCollectiveTensor"
        look(pending)
        with pytest.raises(tnp.NoDataError, match="wait for it"):
            tnp.weights({"pending": pending})["pending"].plan(0)
        store.set("looked", "yes")
    else:
        store.wait(["looked"], LIMIT)
        pending = begin()
    assert pending.tolist() == [3, 3, 3]
