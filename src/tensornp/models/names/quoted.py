"""Quote names in sentences, and make the names of weights unique."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

from tensornp.core.lowlevel.text import format_nbytes, legible

MAX_SHOWN = 120
"""Characters of a name in a sentence."""
MAX_INSIDE = 60
"""Characters of a name among other words of a table."""
MAX_TOLD = 500
"""Characters of what is told of a weight, such as its problem or the path of its file."""
_MAX_NAMED = 6
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_MAX_COMPARED = 5000
"""Names among which the closest is looked for: some tenths of a second."""


def shown_name(name: str) -> str:
    """Return a name in quotes, as one line that a terminal and a page can show."""
    return f"'{cut(name, MAX_SHOWN)}'"


def shown_names(names: Sequence[str]) -> str:
    """Return the first of some names as `shown_name` does."""
    return ", ".join(map(shown_name, names[:_MAX_NAMED])) + (", …" if len(names) > _MAX_NAMED else "")


def cut(text: str, most: int) -> str:
    """Return a text as one displayable line of at most `most` characters."""
    shown = legible(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def cut_inside(name: str, most: int) -> str:
    """Return a name as one short line with both ends, as names differ there."""
    shown = legible(name if len(name) <= 2 * most else name[:most] + name[-most:])
    if len(shown) <= most:
        return shown
    head = most // 2
    return f"{shown[:head]}…{shown[head + 1 - most :]}"


def file_name(path: str) -> str:
    """Return the name of a file without its folders, of whatever system."""
    return path.replace("\\", "/").rpartition("/")[2]


def part_of_storage(numel: int, nbytes: int, itemsize: int, where: str) -> str:
    """Return a text on the used part of a storage, which is `where`."""
    used = f"{numel:,} of {nbytes // itemsize:,} elements used"
    return f"view of a larger storage: {used}, {format_nbytes(nbytes)} {where}"


def closest(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence with the most similar name, or ``""``."""
    import difflib

    found = difflib.get_close_matches(name[:MAX_SHOWN], [one[:MAX_SHOWN] for one in islice(names, _MAX_COMPARED)], 1)
    return f"; the closest is {shown_name(found[0])}" if found else ""


def unique_names(names: Sequence[str]) -> list[str]:
    """Return unique names: the first of each stays, and others get a number behind them."""
    if len(taken := set(names)) == len(names):
        return list(names)
    seen: set[str] = set()
    numbers: dict[str, count[int]] = {}
    found: list[str] = []
    for name in names:
        unlike = name
        while unlike in seen or (unlike != name and unlike in taken):
            unlike = f"{name} ({next(numbers.setdefault(name, count(2)))})"
        seen.add(unlike)
        found.append(unlike)
    return found


def natural(name: str) -> str:
    """Return a sort key: layer 2 comes before layer 10."""
    return _DIGITS.sub(_padded, name)


def _padded(digits: re.Match[str]) -> str:
    return digits[0].zfill(18)


def names_above(name: str) -> Iterator[str]:
    """Yield the names of the modules around a weight or a module, the innermost first."""
    while name:
        name = name.rpartition(".")[0]
        yield name
