"""Distinguish counters and indices from learned weights."""

from __future__ import annotations

from tensornp.models.entries.entry import WeightEntry

_NAMES = frozenset(
    {
        "num_batches_tracked", "position_ids", "token_type_ids", "relative_position_index", "relative_coords_table",
        "rel_pos_index", "cache_position", "num_updates", "steps",
    }
)  # fmt: skip
_DTYPES = ("int64", "bool")
"""Codes of quantized weights are shorter integers."""


def is_counter(entry: WeightEntry) -> bool:
    """Return whether a weight of int64 or bool is a buffer, or has a known name."""
    if entry.dtype not in _DTYPES:
        return False
    return entry.kind == "buffer" or entry.name.rpartition(".")[2] in _NAMES
