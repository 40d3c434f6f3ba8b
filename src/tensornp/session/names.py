"""Define the interface between a front end and its session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Session(Protocol):
    """The names of a session, and where it stands; a front end implements it."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The user's names, with those of the front end's own."""

    @property
    def cell(self) -> str:
        """The cell that runs now: "In[4]"."""

    @property
    def source(self) -> str:
        """The source of the cell that runs now."""


class History(Protocol):
    """Objects that a front end keeps alive: cell results and traceback frames."""

    def traceback_names(self) -> dict[str, Any]:
        """Return the objects in frames of the last traceback, by names with their place."""

    def drop(self, number: int) -> None:
        """Drop the result of the cell with this number."""

    def clear_last_traceback(self) -> None:
        """Release the frames of the last traceback."""
