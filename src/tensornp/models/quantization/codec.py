"""Codes of a block and the values that they mean, without a file or an entry."""

from __future__ import annotations

from typing import Protocol

from tensornp.models.entries.entry import Array

VALUES = "float32"
"""The dtype of what codes mean."""


class Codec(Protocol):
    """How the codes of one type are read: so many bytes for so many values, which lie along the last dimension."""

    @property
    def name(self) -> str: ...

    @property
    def block_numel(self) -> int: ...

    @property
    def block_nbytes(self) -> int: ...

    def decode(self, codes: Array) -> Array:
        """Return the values of the bytes of some blocks, flat, as float32."""
