"""The names of weights: as they are shown, and looked for."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import format_nbytes
from tensornp.errors import BadRequestError

MAX_SHOWN = 120
"""Characters of a name in a sentence."""
MAX_TOLD = 500
"""Characters of what is told of a weight, such as its problem or the path of its file."""
_MAX_NAMED = 6
_MAX_COMPARED = 5000
"""Names among which the closest is looked for: some tenths of a second."""
_WILDCARDS = frozenset("*?[")
_WILDCARD = re.compile(r"\*|\?|\[.*")


def shown_name(name: str) -> str:
    """Return a name in quotes, as one line that a terminal and a page can show."""
    return f"'{cut(name, MAX_SHOWN)}'"


def shown_names(names: Sequence[str]) -> str:
    """Return the first of some names as `shown_name` does."""
    return ", ".join(map(shown_name, names[:_MAX_NAMED])) + (", …" if len(names) > _MAX_NAMED else "")


def cut(text: str, most: int) -> str:
    """Return a text as one line that can be shown, of so many characters at most; cut before it is escaped."""
    shown = legible(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def own_names(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return a name for each, no two equal: where several have one, those of `others`, with numbers if need be."""
    times = Counter(names)
    found = [name if times[name] == 1 else other for name, other in zip(names, others, strict=True)]
    taken = {name for name in names if times[name] == 1}
    numbers: dict[str, count[int]] = {}
    for i, name in enumerate(found):
        if times[names[i]] == 1:
            continue
        unlike = name
        while unlike in taken:
            unlike = f"{name} ({next(numbers.setdefault(name, count(2)))})"
        taken.add(unlike)
        found[i] = unlike
    return found


def matcher(pattern: str | re.Pattern[Any]) -> Callable[[str], object]:
    """Return what tells whether a name fits: a regular expression that is found in it, a glob, or a part of it."""
    if isinstance(pattern, re.Pattern) and not isinstance(pattern.pattern, bytes):
        return pattern.search
    if not isinstance(pattern, str):
        said = "an expression of bytes" if isinstance(pattern, re.Pattern) else an_instance(pattern)
        raise BadRequestError(f"a weight is found by a glob or a compiled regular expression, not by {said}")
    if _WILDCARDS.isdisjoint(pattern):
        return lambda name: pattern in name
    fits = re.compile(fnmatch.translate(pattern)).match
    # Most names are told by a plain text of the pattern, which is found ten times as fast.
    literal = max(_WILDCARD.split(pattern), key=len)
    return lambda name: literal in name and fits(name)


def part_of_storage(numel: int, nbytes: int, itemsize: int, where: str) -> str:
    """Return how much of a storage of so many bytes a weight uses; all of it is `where`: held, or on disk."""
    return (
        f"view of a larger storage: {numel:,} of {nbytes // itemsize:,} elements used, {format_nbytes(nbytes)} {where}"
    )


def closest(name: str, names: Iterable[str]) -> str:
    """Return the name most like `name`, in words that follow a sentence; empty where none is like it."""
    some = [legible(one[:MAX_SHOWN]) for one in islice(names, _MAX_COMPARED)]
    found = difflib.get_close_matches(name[:MAX_SHOWN], some, 1)
    return f"; the closest is {shown_name(found[0])}" if found else ""
