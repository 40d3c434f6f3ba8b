"""What libraries note on a parameter that they spread over ranks, out of its own dictionary; none is imported."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import class_name, dict_of, is_tensor
from tensornp.core.lowlevel.legible import legible

_MAX_TOLD = 4
"""Parameters in a flat one that are told."""


class Placeholder(NamedTuple):
    """What stands for a parameter that DeepSpeed ZeRO-3 has partitioned: its memory is empty, or being written.

    `numel_here` are the elements of this rank's flat part, which is another tensor, without those that fill it up.
    """

    shape: tuple[int, ...]
    numel_here: int
    is_gathering: bool

    @property
    def words(self) -> str:
        """What is here of it, as a clause."""
        if self.is_gathering:
            return f"being gathered by DeepSpeed: {self.shape} in all, and not all of it is here yet"
        part = f" but this rank's flat part of {self.numel_here:,} elements, t.ds_tensor" if self.numel_here else ""
        return f"partitioned by DeepSpeed: {self.shape} in all, nothing of it is here{part}"


def placeholder_of(tensor: Any) -> Placeholder | None:
    """Return what a tensor stands for, if DeepSpeed has partitioned it and not gathered it."""
    own = dict_of(tensor)
    if not own or "ds_status" not in own:
        return None
    shape, status = own.get("ds_shape"), own["ds_status"]
    name = (dict_of(status) or {}).get("_name_") if class_name(type(status)) == "ZeroParamStatus" else None
    if name not in ("NOT_AVAILABLE", "INFLIGHT") or type(shape) not in (torch.Size, tuple):
        return None
    sizes: tuple[int, ...] = tuple(shape or ())
    if any(type(n) is not int for n in sizes):
        return None
    return Placeholder(sizes, _numel_here(own, math.prod(sizes)), name == "INFLIGHT")


def is_spread(own: dict[str, Any]) -> bool:
    """Return whether FSDP1 has made a parameter of others, or DeepSpeed partitions it: both keep much in it."""
    return "ds_status" in own or own.get("_is_flat_param") is True


def flat_parts(tensor: Any) -> list[torch.Tensor]:
    """Return this rank's flat part of what DeepSpeed has partitioned, where it is in memory."""
    part = (dict_of(tensor) or {}).get("ds_tensor")
    return [part] if is_tensor(part) else []


def _numel_here(own: dict[str, Any], numel: int) -> int:
    """Return how many elements of `numel` this rank has; each has as many, of which the last ones may be none."""
    part = own.get("ds_tensor")
    if not is_tensor(part):
        return 0
    size, rank = (dict_of(part) or {}).get("ds_numel", part.numel()), own.get("ds_zero_partition_rank")
    if type(size) is not int or part.numel() != size:
        # It was swapped out of memory.
        return 0
    begin = rank * size if type(rank) is int else 0
    return max(0, min(size, numel - begin))


def spread_of(own: dict[str, Any]) -> tuple[str, ...]:
    """Return what is noted among a tensor's own attributes on how it is spread over ranks, a few words each."""
    return tuple(filter(None, (_cut_by_megatron(own), _flattened_by_fsdp(own))))


def _cut_by_megatron(own: dict[str, Any]) -> str:
    """Return along which dimension Megatron has cut a parameter, of which this rank has one part; empty of others."""
    dim, stride = own.get("partition_dim"), own.get("partition_stride")
    if own.get("tensor_model_parallel") is not True or type(dim) is not int or dim < 0:
        return ""
    return f"tensor parallel along dimension {dim}" + (f", stride {stride}" * (type(stride) is int and stride > 1))


def _flattened_by_fsdp(own: dict[str, Any]) -> str:
    """Return of which parameters FSDP1 has made a flat one, with their shapes; empty of any other."""
    if own.get("_is_flat_param") is not True:
        return "part of a flat parameter" if own.get("_fsdp_flattened") is True else ""
    names, shapes = (found if type(found) in (list, tuple) else () for found in (own.get("_fqns"), own.get("_shapes")))
    told = [
        f"{legible(name)} {tuple(shape)}"
        for name, shape in zip(names or (), shapes or (), strict=False)
        if type(name) is str and type(shape) is torch.Size
    ]
    more = [f"{len(told) - _MAX_TOLD:,} more"] if len(told) > _MAX_TOLD else []
    return f"flat parameter of {', '.join(told[:_MAX_TOLD] + more)}" if told else "flat parameter"
