"""How much of a tensor was read, in words."""

from __future__ import annotations

from collections.abc import Iterable

ALL, SEVERAL, PARTIAL = "all elements", "several parts", "partial"
MAX_SCOPE = 120
SHARD = "local shard"
"""How the scope begins of what is spread over ranks."""


def shards_told(scopes: Iterable[str]) -> str:
    """Return of which parts figures are, said once for many tensors: "local shards of rank 3"; else nothing."""
    shards = dict.fromkeys(scope for scope in scopes if scope.startswith(SHARD))
    return ", ".join(scope.replace(SHARD, f"{SHARD}s", 1) for scope in shards)
