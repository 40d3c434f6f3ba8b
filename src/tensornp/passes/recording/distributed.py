"""What distributed training makes of a module: which class it has by itself, and of which rank its figures are."""

from __future__ import annotations

import torch.distributed

DDP, FSDP = "DDP", "FSDP"
_WRAPPERS = {
    "DistributedDataParallel": DDP,
    "DDP": DDP,
    "ReplicateModule": DDP,
    "FSDPModule": FSDP,
    "FullyShardedDataParallel": FSDP,
}
"""Classes of torch whose modules train with other ranks, by their names: to import them takes long."""
_PREFIXES = ("FSDP", "DDP", "Replicate")


def own_class(cls: type) -> type:
    """Return the class that a module had before torch put another one in its place: of ``FSDPLinear``, ``Linear``."""
    _, *bases = cls.__mro__
    is_put = len(bases) > 2 and _wrapper_named(bases[0])
    names = [f"{prefix}{bases[1].__name__}" for prefix in _PREFIXES] if is_put else ()
    return bases[1] if cls.__name__ in names else cls


def wrapper_of(cls: type) -> str:
    """Return by what the gradients of a module of this class are brought together: "DDP", "FSDP" or nothing."""
    return next((name for base in cls.__mro__ if (name := _wrapper_named(base))), "")


def _wrapper_named(cls: type) -> str:
    return _WRAPPERS.get(cls.__name__, "") if cls.__module__.startswith("torch.") else ""


def this_rank() -> str:
    """Return the name of this rank, ``rank 0``; nobody else is asked."""
    is_known = torch.distributed.is_available() and torch.distributed.is_initialized()
    return f"rank {torch.distributed.get_rank()}" if is_known else "this rank"


def note_of_call(wrapper: str) -> str:
    """Return what is to be said of a call of a module that trains with other ranks; of any other, nothing."""
    if not wrapper:
        return ""
    rank = this_rank()
    return f"gradients of {rank}, before DDP reduces them" if wrapper == DDP else f"sharded by FSDP: {rank} alone"


def note_of_gradient(wrapper: str, rank: str) -> str:
    """Return the same of a gradient that came back for a parameter inside of one."""
    return f"of {rank}, before {wrapper} reduces it" if wrapper else ""
