"""What one cell has changed of what is watched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """A heading, a line for each change, and what was left out of the look."""

    heading: str
    lines: tuple[str, ...] = ()
    left_out: str = ""
