"""A process that plays one rank of four, of which the others never answer: a collective raises, and nothing hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from older import since

SAID = "FakeProcessGroup collective operation error"
"""What torch says of a collective that nobody answers."""
RANK, NUM_RANKS = 1, 4
needs_fsdp = since("2.8", "FSDP2 is tried on a CPU")


def distributed(whole: torch.Tensor, mesh: Any, placements: list[Any]) -> Any:
    """Return a DTensor whose part is cut from the tensor of this rank: a fake group scatters nothing."""
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


class LoneRank:
    """The mesh of all ranks, of which this process is the only one."""

    def __init__(self, number: int = RANK) -> None:
        from torch._C._distributed_c10d import FakeProcessGroup
        from torch.testing._internal.distributed.fake_pg import FakeStore

        self._options = FakeProcessGroup.Options()

        def create(common: Any, _: Any) -> Any:
            return FakeProcessGroup._create_internal(common.group_rank, common.group_size, self._options)

        # One of its own, since groups of a mesh are made without options.
        dist.Backend.register_backend("lone", create, extended_api=True, devices=["cpu"])
        dist.init_process_group("lone", rank=number, world_size=NUM_RANKS, store=FakeStore())
        self.mesh = dist.device_mesh.init_device_mesh("cpu", (NUM_RANKS,))
        self.square = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have each collective raise; outside, one returns at once, and has written nothing."""
        self._options.error_on_collective = True
        try:
            yield
        finally:
            self._options.error_on_collective = False

    @contextmanager
    def destroyed(self) -> Iterator[None]:
        dist.destroy_process_group()
        yield

    def tensors(self) -> dict[str, Any]:
        from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

        local = torch.arange(24.0).view(6, 4)
        sharded = DTensor.from_local(local, self.mesh, [Shard(0)], run_check=False)
        return {
            "sharded": sharded,
            "sharded by columns": DTensor.from_local(local, self.mesh, [Shard(1)], run_check=False),
            "replicated": DTensor.from_local(local.clone(), self.mesh, [Replicate()], run_check=False),
            "partial": DTensor.from_local(local.clone(), self.mesh, [Partial()], run_check=False),
            "uneven": distributed(torch.arange(21.0).view(7, 3), self.mesh, [Shard(0)]),
            "empty here": distributed(torch.arange(1.0), self.mesh, [Shard(0)]),
            "in two dimensions": distributed(torch.arange(64.0).view(8, 8), self.square, [Shard(0), Shard(1)]),
            "replicated in one": distributed(torch.arange(64.0).view(8, 8), self.square, [Replicate(), Shard(1)]),
            "in a part of the mesh": distributed(torch.arange(8.0), self.square["tp"], [Shard(0)]),
            "bfloat16": sharded.to(torch.bfloat16),
            "integers": distributed(torch.arange(8), self.mesh, [Shard(0)]),
            "result": sharded.clone().requires_grad_() * 2,
            "parameter": torch.nn.Parameter(sharded.clone()),
        }

    def model(self, **options: Any) -> torch.nn.Module:
        """Return a model of 93 parameters that FSDP2 has sharded."""
        from torch.distributed.fsdp import fully_shard

        model = torch.nn.Sequential(torch.nn.Linear(7, 6), torch.nn.Linear(6, 5), torch.nn.LayerNorm(5))
        for layer in (*model, model):
            fully_shard(layer, mesh=self.mesh, **options)
        return model

    def gathered(self) -> torch.nn.Module:
        """Return such a model whose parameters stay gathered after their first forward."""
        model = self.model(reshard_after_forward=False)
        model(torch.ones(3, 7))
        # A fake group gathers nothing, so the memory is uninitialized.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.5)
        return model

    def trained(self) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        """Return such a model after a step, and its optimizer."""
        model = self.model()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(3, 7)).sum().backward()
        for parameter in model.parameters():
            parameter.grad.to_local().fill_(0.5)
        optimizer.step()
        return model, optimizer

    def models(self) -> dict[str, Any]:
        """Return what has names: modules sharded and gathered, state dicts, an optimizer, containers of DTensors."""
        from torch.distributed.fsdp import fully_shard

        parametrized = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8))
        fully_shard(parametrized, mesh=self.mesh)
        tensors, gathered, (model, optimizer) = self.tensors(), self.gathered(), self.trained()
        return {
            "model": self.model(),
            "gathered": gathered,
            "trained": model,
            "parametrized": parametrized,
            "optimizer": optimizer,
            "state of the optimizer": optimizer.state_dict(),
            "state": model.state_dict(),
            "parameters": dict(gathered.named_parameters()),
            "list": [tensors["sharded"], tensors["partial"]],
            "dict": {"a": tensors["uneven"], "b": [tensors["replicated"], torch.ones(3)]},
        }
