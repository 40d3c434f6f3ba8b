"""Weights by the modules of which they are all, as one says it of frozen layers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tensornp.core.lowlevel.text import number_ranges

_NUMBER = re.compile(r"(?<![^.])(?:0|[1-9][0-9]{0,8})(?![^.])")
"""A step of a name that is one."""


def by_whole_modules(names: Collection[str], every: Iterable[str]) -> list[str]:
    """Return some weights of `every`: all of a module by its name, ``layers.{0,4..5}``, and the others by their own."""
    own = frozenset(names)
    mixed = {above for name in every if name not in own for above in _above(name)}
    told = dict.fromkeys(next((above for above in _above(name) if above not in mixed), name) for name in names)
    alike: dict[tuple[str, str | None], list[int]] = {}
    for name in told:
        number = _NUMBER.search(name)
        around = (name[: number.start()], name[number.end() :]) if number else (name, None)
        alike.setdefault(around, []).extend([int(number[0])] if number else [])
    return [
        before if after is None else f"{before}{_together(sorted(numbers))}{after}"
        for (before, after), numbers in alike.items()
    ]


def _above(name: str) -> list[str]:
    """Return the names of the modules in which a weight is, the outermost first."""
    steps = name.split(".")
    return [".".join(steps[:num]) for num in range(1, len(steps))]


def _together(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{{{','.join(number_ranges(numbers))}}}"
