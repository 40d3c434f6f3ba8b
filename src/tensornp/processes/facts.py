"""The facts of a weight that are the same on all ranks where all is well, and how lists of them travel."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

MAX_NBYTES = 2**28
"""Bytes of a list that is unpacked: a million weights take a hundred million."""
_SAID = {"kind": "a {}", "device": "on {}", "tied_to": "tied to {}", "nbytes": "{} bytes"}
_WORDS = {"True": "trained", "False": "frozen", "None": "not told", "": "none"}


class Facts(NamedTuple):
    """What is told of a weight on each rank, and is not the rank's own.

    Attributes
    ----------
    kind, dtype : str
    shape : tuple of int or None
        Of the whole tensor, whatever part of it a rank holds.
    nbytes : int
        Of all ranks together.
    requires_grad : bool or None
    device : str
        Its kind alone: "cuda".
    layout : str
        How it is spread over ranks: "S(0), R on dp 4 × tp 8"; empty of what is not.
    tied_to : str
        The first of its other names, by their letters.
    """

    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    requires_grad: bool | None
    device: str
    layout: str
    tied_to: str


def packed(rows: Iterable[Any]) -> bytes:
    """Return a list of plain values in few bytes."""
    return zlib.compress(json.dumps(list(rows), separators=(",", ":")).encode(), 1)


def unpacked(data: Any) -> list[Any]:
    """Return the list again; raises where `data` is none, or one that would take more memory than any has."""
    reader = zlib.decompressobj()
    found = json.loads(reader.decompress(data, MAX_NBYTES))
    if type(found) is not list or not reader.eof:
        raise ValueError("no list")
    return found


def listed(rows: Iterable[Any]) -> dict[str, Facts]:
    """Return facts by name, from rows of both; raises where one is none. Equal facts are one object."""
    known: dict[tuple[Any, ...], Facts] = {}
    found = {}
    for name, kind, shape, *rest in rows:
        key = (kind, None if shape is None else tuple(shape), *rest)
        if (facts := known.get(key)) is None:
            facts = known[key] = _checked(Facts(*key))
        if type(name) is not str:
            raise TypeError("no name")
        found[name] = facts
    return found


def _checked(facts: Facts) -> Facts:
    if {type(one) for one in (facts.kind, facts.dtype, facts.device, facts.layout, facts.tied_to)} != {str}:
        raise TypeError("no facts")
    if facts.requires_grad not in (True, False, None) or any(whole(size, -1) < -1 for size in facts.shape or ()):
        raise TypeError("no facts")
    return facts._replace(nbytes=whole(facts.nbytes))


_MOST = 2**128
"""No size and no digest is larger."""


def whole(value: Any, least: int = 0) -> int:
    """Return a whole number; raises where it is none, or less."""
    if type(value) is not int or not least <= value <= _MOST:
        raise TypeError("no such number")
    return value


def number(value: Any) -> Any:
    """Return a number, or None where there is none; raises for what is neither, and for what nothing adds up to."""
    if not isinstance(value, bool | float | None):
        whole(value, -_MOST)
    return value


def unlike(here: Facts, first: Facts) -> str:
    """Return which facts of a weight are others here, and what they are on the other ranks."""
    names = [name for name in Facts._fields if getattr(here, name) != getattr(first, name)]
    if len(names) > 1 and "nbytes" in names:
        names.remove("nbytes")
    mine, others = (", ".join(_told(name, getattr(facts, name)) for name in names) for facts in (here, first))
    return f"{mine} here, {others} on the others"


def _told(name: str, value: Any) -> str:
    return _SAID.get(name, "{}").format(_WORDS.get(str(value), value))
