"""Who else sees a tensor's memory, as lines of a card: each a few words, and the names that they are true of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensornp.core.aliasing import DANGLING, Alias
from tensornp.core.surroundings import Surroundings

MAX_NAMES = 6
"""Names that a line shows."""
_SAME = ("same object", "same elements", "reinterpreted")
_GROUPS = (
    ("same memory as", _SAME),
    ("overlaps", ("overlapping",)),
    ("may overlap", ("may overlap",)),
    ("other elements of the same storage:", ("same storage",)),
    ("no longer shares with", ("stale",)),
)


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One line: its words, the names with what is said of each, and what follows them."""

    words: str
    names: tuple[tuple[str, str], ...]
    rest: str = ""

    @property
    def text(self) -> str:
        """The line as plain text."""
        return f"{self.words} {', '.join(name for name, _ in self.names)}{self.rest}".strip()


def memory_lines(around: Surroundings) -> tuple[MemoryLine, ...]:
    """Return what a card says of the memory, the closest relation first; nothing where nobody else sees it."""
    lines = list(_lines(around.aliases))
    lines += [MemoryLine(f".grad: {line.words}", line.names, line.rest) for line in _lines(around.grad_aliases)]
    lines += [MemoryLine(around.stopped, ())] if around.stopped else []
    return tuple(lines)


def _lines(aliases: Iterable[Alias]) -> Iterator[MemoryLine]:
    aliases = list(aliases)
    for words, relations in _GROUPS:
        # Where names are left out, those of IPython's history are the first to go.
        group = sorted((a for a in aliases if a.relation in relations), key=lambda a: a.name.startswith("Out["))
        dangling = [alias for alias in group if alias.note == DANGLING]
        group = [alias for alias in group if alias.note != DANGLING]
        if group:
            left_out = len(group) - MAX_NAMES
            rest = f" and {left_out:,} more" if left_out > 0 else ""
            yield MemoryLine(words, tuple((_name(a), _title(a)) for a in group[:MAX_NAMES]), rest)
        if dangling:
            names = tuple((_name(alias), _title(alias)) for alias in dangling[:MAX_NAMES])
            yield MemoryLine("do not touch", names, ": the storage has moved, and their memory was given back")


def _name(alias: Alias) -> str:
    return f"{alias.name} (NumPy array)" if alias.kind == "array" else alias.name


def _title(alias: Alias) -> str:
    where = f", bytes {alias.byte_range[0]:,} to {alias.byte_range[1]:,}" if alias.byte_range else ""
    note = f"; {alias.note}" if alias.note else ""
    return f"{alias.kind}: {alias.relation}{where}{note}"
