"""The changes that one cell has made to watched tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One tensor or array and its change; `size` is the largest absolute difference, or 0.

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
    """A heading, a line for each change, and the parts that were not read.

    `unchanged` are the names of those that were compared, and have not changed.
    """

    heading: str
    lines: tuple[ReportLine, ...] = ()
    left_out: str = ""
    num_watched: int = 0
    unchanged: tuple[str, ...] = ()
