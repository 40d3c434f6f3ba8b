"""Find parameters that FSDP2 has gathered; it resizes their storages when it reshards them.

torch has no public way to ask, so this reads private attributes. Parameters of FSDP1 are not recognized.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from tensornp.core.lowlevel.torch_private import storage_address

_STATES = "torch.distributed._composable_state"
GATHERED = "gathered just now"


def is_unsharded(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` lies in memory into which FSDP2 has gathered a parameter."""
    return _STATES in sys.modules and storage_address(tensor) in gathered_addresses()


def gathered_addresses() -> set[int]:
    """Return the storage addresses of all parameters that FSDP2 has gathered; 0.1 µs without FSDP."""
    return {storage_address(one) for one in _gathered()} - {0} if _STATES in sys.modules else set()


def _gathered() -> Iterator[torch.Tensor]:
    modules: Any = getattr(sys.modules[_STATES], "_module_state_mapping", {})
    for held in list(modules.values()):
        state = held() if isinstance(held, weakref.ref) else held
        for group in getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]:
            # Most are sharded most of the time, and then have no memory there.
            if not getattr(group, "is_sharded", False):
                for parameter in getattr(group, "fsdp_params", ()):
                    yield from getattr(parameter, "all_gather_outputs", ())
                    yield from getattr(parameter, "_unsharded_inner_tensors", ())
