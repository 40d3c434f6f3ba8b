"""What one cell has changed of what is watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One tensor or array, and what has happened to it; `size` is the largest absolute difference, 0 if unknown.

    A single integer, as that of the batches which a batch norm has seen, may be a count: `is_count`. `alarm` is what is
    not finite since. What has `come` was not watched before, or is no more: the other lines are of changes.
    """

    name: str
    parts: tuple[str, ...]
    size: float = 0.0
    is_count: bool = False
    alarm: str = ""
    come: Literal["", "new", "gone"] = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A heading, a line for each change among `num_watched` tensors and arrays, and what was left out of the look.

    `unchanged` are the names of those that were compared, and have not changed.
    """

    heading: str
    lines: tuple[ReportLine, ...] = ()
    left_out: str = ""
    num_watched: int = 0
    unchanged: tuple[str, ...] = ()
