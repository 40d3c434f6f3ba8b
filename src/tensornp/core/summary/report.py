"""What one cell has changed of what is watched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One tensor or array, and what has happened to it; `size` is the largest absolute difference.

    It is 0 where it is not known, and of a count.
    """

    name: str
    parts: tuple[str, ...]
    size: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A heading, a line for each change among `num_watched` tensors and arrays, and what was left out of the look."""

    heading: str
    lines: tuple[ReportLine, ...] = ()
    left_out: str = ""
    num_watched: int = 0
