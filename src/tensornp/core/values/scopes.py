"""Say in words how much of a tensor was read."""

from __future__ import annotations

from collections.abc import Iterable

ALL, SEVERAL, PARTIAL = "all elements", "several parts", "partial"
MAX_SCOPE = 120
SHARD = "local shard"
"""The first words of the scope of a sharded tensor."""


def shards_told(scopes: Iterable[str]) -> str:
    """Return the shards in the scopes of many tensors, each once: "local shards of rank 3"."""
    shards = dict.fromkeys(scope for scope in scopes if scope.startswith(SHARD))
    return ", ".join(scope.replace(SHARD, f"{SHARD}s", 1) for scope in shards)
