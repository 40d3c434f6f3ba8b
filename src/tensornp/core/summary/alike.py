"""Fold names that differ by one number: ``t[{0..199}]``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import number_ranges

_NUMBER = re.compile(r"(?<![\d-])(0|[1-9]\d{0,17})(?!\d)")
_MIN_ALIKE = 3
"""Fewer are seen at a glance."""


class Alike(NamedTuple):
    """The pattern of some names and their places in the list; a single name is its own pattern."""

    pattern: str
    members: tuple[int, ...]


def alike(names: Sequence[str], facts: Sequence[Any]) -> Iterator[Alike]:
    """Yield the patterns of names with equal facts, each in the place of its first name."""
    taken: dict[int, Alike] = {}
    # Those that differ in one number at most, the most first.
    found: dict[Any, list[int]] = defaultdict(list)
    for i, (name, fact) in enumerate(zip(names, facts, strict=True)):
        parts = _NUMBER.split(name) if fact is not None else []
        for place in range(1, len(parts), 2):
            found[fact, place, (*parts[:place], *parts[place + 1 :])].append(i)
    for (_, place, rest), members in sorted(found.items(), key=lambda item: -len(item[1])):
        # Equal names stay apart.
        free = list({names[i]: i for i in reversed(members) if i not in taken}.values())[::-1]
        if len(free) >= _MIN_ALIKE:
            numbers = sorted(int(_NUMBER.split(names[i])[place]) for i in free)
            ranges = "{" + ",".join(number_ranges(numbers)) + "}"
            one = Alike("".join([*rest[:place], ranges, *rest[place:]]), tuple(free))
            taken |= dict.fromkeys(free, one)
    for i, name in enumerate(names):
        if i not in taken:
            yield Alike(name, (i,))
        elif taken[i].members[0] == i:
            yield taken[i]
