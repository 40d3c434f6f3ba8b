"""Sharded parameters: a display on one rank needs no other, and training goes on as if nobody had looked."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
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
