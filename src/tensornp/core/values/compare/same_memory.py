"""Whether two are the same memory: what is written there changes both, and no comparison sees it."""

from __future__ import annotations

from typing import Any

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.aliases import Target

SAME_MEMORY = "both are the same memory"


def same_memory_note(a: Any, b: Any) -> str:
    """Return that each element of two lies in the same place of the same memory; empty where it does not."""
    if not all(is_tensor(one) or is_array(one) for one in (a, b)):
        # Of a file, of a class that stands for a tensor.
        return ""
    is_same = Target(a).compare(b)[0] in ("same object", "same elements")
    return f"{SAME_MEMORY}: a copy that is made before a step, as by .clone(), keeps what was" if is_same else ""
