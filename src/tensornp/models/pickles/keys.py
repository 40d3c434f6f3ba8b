"""What a dictionary of a pickle has as its keys: none is asked for a hash that a file could have chosen."""

from __future__ import annotations

from typing import Any

from tensornp.models.pickles.records import Call, Global

_MAX_LENGTH = 16
"""Parts of a tuple, the hash of which is found anew each time; those in it have a quarter of that."""
_MAX_NUMBER = 2**61
"""Larger integers can be found that have one hash."""
_PLAIN = frozenset((str, bool, bytes, type(None), Call))
"""Classes of which the hash is not to be foreseen, or those of few values; calls and records have their identity."""


class OddKey:
    """A key by what makes it equal to others: a large number by its digits, what would be imported by its name."""

    __slots__ = ("same",)

    def __init__(self, same: object) -> None:
        self.same = same

    def __hash__(self) -> int:
        return hash(self.same)

    def __eq__(self, other: object) -> bool:
        return type(other) is OddKey and self.same == other.same

    def __str__(self) -> str:
        return str(self.same) if type(self.same) in (str, Global) else "<key>"


def as_key(key: Any, max_length: int = _MAX_LENGTH) -> Any:
    """Return what stands for a key that is no text: equal to that of equal keys, where it is not too long."""
    kind = type(key)
    if kind in _PLAIN:
        return key
    if kind is int or kind is float:
        if not abs(key) >= _MAX_NUMBER:
            return key
        return OddKey(str(int(key)) if kind is int or key.is_integer() else str(key))
    if kind is Global:
        return OddKey(key)
    if kind is tuple and len(key) <= max_length:
        return tuple([as_key(one, max_length // 4) for one in key])
    return OddKey(object())
