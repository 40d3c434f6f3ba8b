"""Which storages FSDP frees and fills again while it trains; it is asked where it is imported already.

By private names of torch, which has no public way to ask: those of FSDP2 since 2.4, and those of FSDP1.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import own_attributes
from tensornp.core.lowlevel.ordinary import is_of_torch, is_strided

_STATES = "torch.distributed._composable_state"
_FLAT_PARAMETERS = "torch.distributed.fsdp._flat_param"
_base: Any = torch.Tensor._base
GATHERED = "gathered just now"
"""What is said of it in a few words."""
_GATHERED = ("_full_param_padded", "_full_prec_full_param_padded")
"""Attributes of what FSDP1 flattens: into what it gathers that."""


def is_unsharded(tensor: torch.Tensor) -> bool:
    """Return whether FSDP has gathered a parameter into the storage of `tensor`, which it resizes when it reshards.

    Takes some tens of microseconds for each hundred parameters that are gathered now, and next to nothing without FSDP.
    """
    if _FLAT_PARAMETERS in sys.modules and _is_flattened(tensor):
        return True
    if _STATES not in sys.modules or not _modules():
        return False
    address = torch_private.storage_address(tensor)
    return bool(address) and any(torch_private.storage_address(one) == address for one in _gathered())


def may_be_sharded(own: dict[str, Any], ndim: int) -> bool:
    """Return whether one of these own attributes that is taken for gathered may be this rank's part all the same.

    What FSDP1 has flattened under its own name has one dimension then, and nothing else tells.
    """
    return own.get("_fsdp_flattened") is True and own.get("_is_flat_param") is not True and ndim < 2


def gathered_among(tensors: Iterable[Any]) -> set[int]:
    """Return the ids of those ordinary tensors that are gathered for sure; FSDP2 is asked once."""
    if not {_STATES, _FLAT_PARAMETERS} & sys.modules.keys():
        return set()
    gathered = set(map(torch_private.storage_address, _gathered())) - {0} if _STATES in sys.modules else set()
    has_flat = _FLAT_PARAMETERS in sys.modules
    return {
        id(one)
        for one in tensors
        if is_strided(one)
        and (
            (has_flat and _is_flattened(one) and not may_be_sharded(one.__dict__, one.dim()))
            or (gathered and torch_private.storage_address(one) in gathered)
        )
    }


def _modules() -> Any:
    """Return what FSDP2 knows of each module that it has sharded, which is imported."""
    modules: Any = getattr(sys.modules[_STATES], "_module_state_mapping", {})
    return getattr(modules, "data", modules)


def _gathered() -> Iterator[torch.Tensor]:
    """Yield the tensors into which FSDP2 has gathered parameters."""
    # A copy at once, since another thread may shard a module meanwhile.
    for held in list(_modules().values()):
        state = held() if isinstance(held, weakref.ref) else held
        for group in getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]:
            # Most are sharded most of the time, and then have no memory there.
            if not getattr(group, "is_sharded", False):
                for parameter in getattr(group, "fsdp_params", ()):
                    yield from getattr(parameter, "all_gather_outputs", ())
                    yield from getattr(parameter, "_unsharded_inner_tensors", ())


def _is_flattened(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is, or is a view of, a parameter that FSDP1 has flattened, and may have gathered."""
    base = _base.__get__(tensor)
    for one in (tensor,) if base is None else (tensor, base):
        own = one.__dict__ if is_of_torch(one) else dict(own_attributes(one))
        if not own:
            continue
        if own.get("_is_flat_param") is True:
            address = torch_private.storage_address(tensor)
            return any(
                own.get(name) is not None and torch_private.storage_address(own[name]) == address for name in _GATHERED
            )
        if own.get("_fsdp_flattened") is True:
            return True
    return False
