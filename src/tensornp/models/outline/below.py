"""Where below a closed line something stands out, said in a few words: ``layer 3``."""

from __future__ import annotations


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
