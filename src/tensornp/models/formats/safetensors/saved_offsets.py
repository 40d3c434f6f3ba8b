"""Where in a tensor the chunk of each rank begins, as a header of safetensors says."""

from __future__ import annotations

import json

from tensornp.models.reading.selection import Shape

SHARDING_INFO = "DCP_SHARDING_INFO"


def saved_offsets(metadata: dict[str, str]) -> dict[str, Shape]:
    """Return where in its tensor each chunk of a safetensors file begins; empty where the file does not say it."""
    try:
        told = json.loads(metadata.get(SHARDING_INFO, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not told or not isinstance(told, dict):
        return {}
    from tensornp.models.pickles.torch_pickle import sizes_of

    found = {name: sizes_of(one.get("saved_offsets")) for name, one in told.items() if isinstance(one, dict)}
    return {name: offsets for name, offsets in found.items() if offsets is not None}
