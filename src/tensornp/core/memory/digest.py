"""Digests of bytes, by xxh3: equal bytes have equal ones."""

from __future__ import annotations

from typing import Any


def digest_of(data: Any) -> bytes:
    """Return 16 bytes that tell equal bytes: of a text of bytes, or of a contiguous array."""
    import xxhash

    return xxhash.xxh3_128_digest(data)


def number_of(data: Any) -> int:
    """Return 64 bits that tell equal bytes."""
    import xxhash

    return xxhash.xxh3_64_intdigest(data)
