"""Report the changes that one cell has made to watched tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One tensor or array and its change; `size` is the largest absolute difference, or 0.

    `is_count` marks a single integer, such as the step count of a batch norm. `alarm` are new non-finite values.
    """

    name: str
    parts: tuple[str, ...]
    size: float = 0.0
    is_count: bool = False
    alarm: str = ""
    come: Literal["", "new", "gone"] = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A heading, a line for each change, and the parts that were not read."""

    heading: str
    lines: tuple[ReportLine, ...] = ()
    left_out: str = ""
    num_watched: int = 0
