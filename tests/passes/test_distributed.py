"""Passes of models that are trained by several ranks: bits are equal on each, and no collective is begun."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.distributed as dist
from child import in_fork, in_two_ranks
from older import since
from torch import nn

import tensornp as tnp
from tensornp.passes.recording.distributed import own_class, wrapper_of

Follow = Callable[[], Any]


class Net(nn.Module):
    """Layers of which some have no parameters, and one parameter that is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.2)) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        for layer in self.layers:
            x = layer(x) + x
        out: torch.Tensor = self.head(self.norm(x))
        return out


def in_ddp(model: nn.Module) -> nn.Module:
    """Return it as one whose gradients are reduced."""
    return nn.parallel.DistributedDataParallel(model)


def in_ddp_of_buckets(model: nn.Module) -> nn.Module:
    """Return it as one whose gradients are views of what is reduced."""
    return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=1)


def in_fsdp(model: Any, **options: Any) -> nn.Module:
    """Return it with each layer sharded, and what is left."""
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (*model.layers, model.head, model):
        fully_shard(part, mesh=mesh, **options)
    return model  # type: ignore[no-any-return]


def in_fsdp_that_stays_gathered(model: Any) -> nn.Module:
    """Return it with what is gathered in the forward kept for the backward."""
    return in_fsdp(model, reshard_after_forward=False)


def in_fsdp_of_bfloat16(model: Any) -> nn.Module:
    """Return it as one that computes in fewer bits than it keeps."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return in_fsdp(model, mp_policy=policy)


def in_fsdp_of_flat_parameters(model: Any) -> nn.Module:
    """Return it under the first FSDP, whose layers have views of one parameter: not leaves, and without a gradient."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))


def in_tensor_parallel(model: Any) -> nn.Module:
    """Return it with the weights of its layers split, one by rows and one by columns."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(
        model, mesh, {"layers.0.0": gathered(ColwiseParallel), "layers.1.0": gathered(RowwiseParallel)}
    )


def gathered(style: Any) -> Any:
    """Return a way to split whose inputs and outputs are whole."""
    from torch.distributed.tensor import Replicate

    return style(input_layouts=Replicate(), output_layouts=Replicate())


def nothing() -> Any:
    """Return a context that does nothing."""
    return nullcontext()


def on_rank_0() -> Any:
    """Follow on one rank alone."""
    return tnp.follow() if dist.get_rank() == 0 else nullcontext()


def operators_on_rank_0() -> Any:
    """Follow the operators on one rank alone."""
    return tnp.follow(level="operators") if dist.get_rank() == 0 else nullcontext()


def train(wrapped: Callable[[nn.Module], nn.Module], follow: Follow) -> tuple[list[Any], list[Any]]:
    """Return the bits that three steps leave, and the passes."""
    torch.manual_seed(0)
    model = wrapped(Net())
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


def local(tensor: Any) -> torch.Tensor:
    """Return a copy of what this rank has."""
    tensor = tensor.detach()
    return getattr(tensor, "_local_tensor", tensor).clone()


def check_equal(wrapped: Callable[[nn.Module], nn.Module]) -> list[Any]:
    """Train with and without following, on all ranks and on one, and return the passes of all."""
    expected, _ = train(wrapped, nothing)
    number = dist.group.WORLD._get_sequence_number_for_group()
    again, _ = train(wrapped, nothing)
    num_collectives = dist.group.WORLD._get_sequence_number_for_group() - number
    assert again == expected
    for follow in (tnp.follow, on_rank_0, operators_on_rank_0):
        number = dist.group.WORLD._get_sequence_number_for_group()
        found, runs = train(wrapped, follow)
        assert dist.group.WORLD._get_sequence_number_for_group() - number == num_collectives
        assert found == expected
        if follow is tnp.follow:
            followed = runs
    for run in followed:
        assert run._record.notes == ()
        assert not any("got no gradient" in one for one in run.problems), run.problems
        assert run.first("nonfinite") is None
        assert [step.class_name for step in run._record.steps] == ["Adam"]
        assert tnp.card(run).text
    return followed


def check_ddp(rank: int) -> None:
    """Check both kinds."""
    for wrapped in (in_ddp, in_ddp_of_buckets):
        for run in check_equal(wrapped):
            assert run.calls[0].class_name == "DistributedDataParallel"
            assert f"gradients of rank {rank}, before DDP reduces them" in run.calls[0].notes
            notes = {one.note for one in run._record.grads}
            assert notes == {f"of rank {rank}, before DDP reduces it"}
            assert len(run.grads) == 8
            assert all(run.grads.values())
            assert "before DDP reduces them" in tnp.card(run).text


def check_local(rank: int) -> None:
    """Check that what is told is the gradient before it is reduced: that of the same model alone."""
    torch.manual_seed(0)
    alone = Net().eval()
    torch.manual_seed(0)
    model = in_ddp(Net().eval())
    x = torch.full((2, 6), 1.0 + rank) * torch.arange(6)
    alone(x).square().sum().backward()
    with tnp.follow() as run:
        model(x).square().sum().backward()
    for name, parameter in alone.named_parameters():
        assert run.grads[f"module.{name}"].norm == pytest.approx(parameter.grad.norm().item(), rel=1e-4)
    if dist.get_world_size() > 1:
        reduced = model.module.head.weight.grad.norm().item()
        assert run.grads["module.head.weight"].norm != pytest.approx(reduced, rel=1e-3)


def check_fsdp(rank: int) -> None:
    """Check both ways to gather."""
    for wrapped in (in_fsdp, in_fsdp_that_stays_gathered):
        for run in check_equal(wrapped):
            names = [call.class_name for call in run.calls]
            assert names[:3] == ["Net", "Sequential", "Linear"]
            assert not any("FSDP" in name for name in names)
            assert f"sharded by FSDP: rank {rank} alone" in run.calls[0].notes
            grads = {one.name: one for one in run._record.grads}
            assert len(grads) == 8
            assert all(one.figures for one in grads.values()), grads
            # The head is sharded by itself: its call gets what is not gathered yet.
            assert grads["head.weight"].note == f"of the local shard of rank {rank}, from .grad"
            assert grads["norm.weight"].note == f"of rank {rank}, before FSDP reduces it"
            assert {value.note for value in run["head"].params} == {"figures of the local shard"}


def check_what_is_kept(rank: int) -> None:
    """Check the gradients that are read from `.grad`: those of this pass, whether a step is made or not."""
    torch.manual_seed(0)
    model = in_fsdp(Net())
    x = torch.randn(4, 6)
    with tnp.follow() as run:
        model(x).sum().backward()
    first = local(model.head.weight.grad).norm().item()
    assert run.grads["head.weight"].norm == pytest.approx(first, rel=1e-4)
    with tnp.follow() as run, torch.no_grad():
        model(x)
    assert run.grads.get("head.weight") is None
    with tnp.follow() as run:
        model(x).sum().backward()
    second = local(model.head.weight.grad).norm().item()
    assert run.grads["head.weight"].norm == pytest.approx(second, rel=1e-4)
    with tnp.follow() as run:
        model(x)
        model.zero_grad()
    assert run.grads["head.weight"] is None
    assert not any("got no gradient" in one for one in run.problems)
    with tnp.follow() as run:
        (model(x).sum() * torch.nan).backward()
    assert run.first("nan").phase == "backward"


def check_that_one_may_be_alone(rank: int) -> None:
    """Check that entering and leaving a block, and the card, ask no other rank: it is asleep meanwhile."""
    store = dist.distributed_c10d._get_default_store()
    model = in_fsdp(Net())
    x = torch.randn(4, 6)
    if rank == 0:
        run = tnp.follow(model)
        run.__enter__()
    model(x).sum().backward()
    if rank == 0:
        run.__exit__(None, None, None)
        tnp.card(run)
        store.set("looked", "yes")
    else:
        store.wait(["looked"], datetime.timedelta(seconds=100))
    dist.barrier()
    store.delete_key("looked")
    dist.barrier()


@pytest.mark.slow
@in_two_ranks
def test_two_ranks_of_ddp_train_as_they_would(rank):
    """And the gradients that are told are each rank's own."""
    check_ddp(rank)
    check_local(rank)


@pytest.mark.slow
@since("2.8", "FSDP2 is tried on a CPU")
@in_two_ranks
def test_two_ranks_of_fsdp_train_as_they_would(rank):
    """With the names of the classes as they were, and gradients of the local shards."""
    check_fsdp(rank)
    for wrapped in (in_fsdp_of_bfloat16, in_tensor_parallel):
        for run in check_equal(wrapped):
            assert all(run.grads.values())
    check_what_is_kept(rank)
    check_that_one_may_be_alone(rank)


@pytest.mark.slow
@in_fork
def test_one_rank_trains_as_it_would_and_says_the_same():
    """Of the first FSDP, which two ranks on a CPU have not, and of a model that was put under DDP in its place."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8):
        return
    for run in check_equal(in_fsdp_of_flat_parameters):
        assert all(run.grads.values())
    from torch.distributed._composable.replicate import replicate

    model = replicate(Net())
    with tnp.follow() as run:
        model(torch.ones(2, 6)).sum().backward()
    assert type(model).__name__ != "Net"
    assert run.calls[0].class_name == "Net"
    assert "gradients of rank 0, before DDP reduces them" in run.calls[0].notes


def test_a_class_keeps_its_name_whatever_that_ends_with():
    """Only what torch has put in the place of a class is told by that."""

    class FSDPLinear(nn.Linear):
        """A class of the user's."""

    class TrainingModule(nn.parallel.DistributedDataParallel):
        """Another one."""

    with tnp.follow() as run:
        FSDPLinear(2, 2)(torch.ones(1, 2))
    assert run.calls[0].class_name == "FSDPLinear"
    assert run.calls[0].notes == ()
    assert own_class(TrainingModule) is TrainingModule
    assert wrapper_of(TrainingModule) == "DDP"
