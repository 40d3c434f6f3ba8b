"""Checkpoints of `torch.distributed.checkpoint` for tests: written by torch, or by hand of torch's own records."""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter, _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

Boxes = list[tuple[tuple[int, ...], tuple[int, ...]]]
ITEMS = "__0_0.distcp"


def save(tree: dict[str, Any], folder: Path) -> Path:
    """Have torch save a state dict, in this process alone, and return its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(tree, storage_writer=FileSystemWriter(folder))
    return folder


def item(tensor: torch.Tensor) -> bytes:
    """Return what torch writes of one chunk."""
    buffer = io.BytesIO()
    torch.save(tensor, buffer)
    return buffer.getvalue()


def written(
    folder: Path,
    tensors: dict[str, tuple[torch.Tensor, Boxes]],
    *,
    change: Callable[[Metadata], object] = lambda _: None,
) -> Path:
    """Write tensors in chunks, as several ranks would; `change` is told what the metadata will say."""
    told, places, data = {}, {}, b""
    for name, (tensor, boxes) in tensors.items():
        chunks = []
        for offsets, sizes in boxes:
            part = tensor[tuple(slice(i, i + n) for i, n in zip(offsets, sizes, strict=True))]
            one = item(part.clone())
            places[MetadataIndex(name, offsets)] = _StorageInfo(ITEMS, len(data), len(one))
            chunks.append(ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)))
            data += one
        told[name] = TensorStorageMetadata(TensorProperties(tensor.dtype), tensor.shape, chunks)
    metadata = Metadata(told, None, places)
    change(metadata)
    folder.mkdir(exist_ok=True)
    (folder / ITEMS).write_bytes(data)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    return folder


def whole(tensor: torch.Tensor) -> tuple[torch.Tensor, Boxes]:
    return tensor, [((0,) * tensor.dim(), tuple(tensor.shape))]


def in_rows(tensor: torch.Tensor, *counts: int) -> tuple[torch.Tensor, Boxes]:
    """Return a tensor whose chunks have so many rows each."""
    rest = tuple(tensor.shape[1:])
    firsts = [sum(counts[:i]) for i in range(len(counts))]
    return tensor, [((first,) + (0,) * len(rest), (n, *rest)) for first, n in zip(firsts, counts, strict=True)]


def of_ranks() -> dict[str, torch.Tensor]:
    """Return what two ranks save in shards: by rows and columns, uneven, too few for both, replicated, plain."""
    g = torch.Generator().manual_seed(0)
    return {
        "rows": torch.randn(64, 500, generator=g), "columns": torch.randn(500, 64, generator=g).bfloat16(),
        "uneven": torch.arange(21.0).view(7, 3), "few": torch.arange(3).view(1, 3),
        "cube": torch.arange(60, dtype=torch.int32).view(3, 4, 5), "replicated": torch.ones(4), "plain": torch.ones(3),
    }  # fmt: skip


def save_rank(folder: str, rank: int) -> None:
    """Save the same as one of two ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/rendezvous", 2), rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    placements = {"columns": Shard(1), "cube": Shard(2), "replicated": Replicate()}
    tree: dict[str, Any] = {
        name: distribute_tensor(tensor, mesh, [placements.get(name, Shard(0))]) if name != "plain" else tensor + rank
        for name, tensor in of_ranks().items()
    }
    dcp.save({**tree, "step": 7 + rank}, storage_writer=FileSystemWriter(f"{folder}/saved"))
    dist.barrier()
    dist.destroy_process_group()
