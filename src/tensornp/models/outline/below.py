"""Where below a line something is, said in a few words: ``layer 3`` of what is closed, ``layer.3`` of what is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def part_of(name: str, first: str, last: str) -> str:
    """Return in which part of a line the weight `name` lies, of which `first` and `last` are the outermost names.

    It is the key at which these two differ, with the one before it where it is a number.
    """
    keys = name.split(".")
    ends = list(zip(first.split("."), last.split("."), strict=False))
    at = min(next((i for i, (a, b) in enumerate(ends) if a != b), len(ends)), len(keys) - 1)
    if not keys[at].isdecimal() or at == 0 or keys[at - 1].isdecimal():
        return keys[at]
    return f"{keys[at - 1].removesuffix('s')} {keys[at]}"


def distinguishing(name: str, entries: Sequence[Any]) -> str:
    """Return the part of a name that tells it from the others of a pattern, with the key before it where there is one.

    The outermost number differs between the first and the last, the innermost one between the first two.
    """
    keys, first, *others = (one.split(".") for one in (name, *(one.name for one in (*entries[:2], entries[-1]))))
    places = [i for other in others for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b]
    return ".".join(keys[max(min(places) - 1, 0) : max(places) + 1]) if places else name
