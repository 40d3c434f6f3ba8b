"""What a file of weights was found to hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensornp.trees.entry import WeightEntry


class Contents(NamedTuple):
    """The weights of a file, what it says besides, and what is wrong with it, a sentence each."""

    entries: list[WeightEntry]
    metadata: dict[str, Any]
    problems: list[str]
