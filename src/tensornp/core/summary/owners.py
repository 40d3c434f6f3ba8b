"""Whose the bytes of a table are: one owner for each piece of memory, however many names reach it."""

from __future__ import annotations

from itertools import pairwise

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.memory.storages import Found, Group
from tensornp.core.tensor.paths import steps_of

OWNERS = ("parameters and buffers", "gradients", "optimizer states", "other names", "history", "last traceback")
"""In the order in which they are told."""


def owner_of(group: Group) -> str:
    """Return whose the memory is: a module's, if one reaches it; a gradient's, if nothing but gradients do."""
    named = [found for found in group.found if found.holding == "name"]
    if not named:
        is_history = any(found.holding == "history" for found in group.found)
        return "history" if is_history else "last traceback"
    if any(found.kind in ("parameter", "buffer") for found in named):
        return "parameters and buffers"
    if all(found.kind == "grad" for found in named):
        return "gradients"
    return "optimizer states" if any(map(_is_state, named)) else "other names"


def _is_state(found: Found) -> bool:
    """Return whether it lies in a ``.state`` of which a tensor is the key, as an optimizer has it."""
    steps = list(steps_of(found.path))
    return any(type(key) is tuple and is_tensor(key[0]) and holder == ".state" for key, holder in pairwise(steps))
