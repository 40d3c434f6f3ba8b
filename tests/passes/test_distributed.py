"""Passes of models that several ranks train: bits are equal on each, and no collective is begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from child import in_fork
from torch import nn

import tensornp as tnp

Wrap = Callable[[nn.Module], nn.Module]


def in_ddp(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def in_fsdp(model: Any) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (*model[:2], model):
        fully_shard(part, mesh=mesh)
    return model  # type: ignore[no-any-return]


def local(tensor: Any) -> torch.Tensor:
    """Return a copy of the part of this rank."""
    tensor = tensor.detach()
    return getattr(tensor, "_local_tensor", tensor).clone()


def train(wrap: Wrap, follow: Callable[[], Any]) -> tuple[list[Any], list[Any]]:
    """Return the bits that three steps leave, and the passes."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.2)) for _ in range(2)]
    model = wrap(nn.Sequential(*layers, nn.LayerNorm(6), nn.Linear(6, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    bits, runs = [], []
    for step in range(3):
        torch.manual_seed(10 * step + dist.get_rank())
        optimizer.zero_grad()
        with follow() as run:
            loss = model(torch.randn(4, 6)).square().mean()
            loss.backward()
            optimizer.step()
        runs.append(run)
        bits.append(loss.detach().float().numpy().tobytes())
        bits += [local(p).numpy().tobytes() for p in model.parameters()]
        bits += [local(p.grad).numpy().tobytes() for p in model.parameters() if p.grad is not None]
        bits.append(torch.get_rng_state().numpy().tobytes())
    return bits, runs


def check(wrap: Wrap) -> None:
    expected, _ = train(wrap, nullcontext)
    by_operators = partial(tnp.follow, level="operators")
    numbers = []
    for follow in (nullcontext, tnp.follow, by_operators if dist.get_rank() == 0 else nullcontext):
        number = dist.group.WORLD._get_sequence_number_for_group()
        found, runs = train(wrap, follow)
        numbers.append(dist.group.WORLD._get_sequence_number_for_group() - number)
        assert found == expected
        for run in filter(None, runs):
            assert run.complete, run._record.notes
            assert not any(one.kind == "no gradient" for one in run.findings), run.problems
            assert run.origin is None and len(run.steps) == 1
    assert len(set(numbers)) == 1


@in_fork
def test_a_rank_alone_leaves_the_same_bits():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    for wrap in (in_ddp, in_fsdp):
        check(wrap)
