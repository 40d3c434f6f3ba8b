"""What a front end tells of the session that it runs."""

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
    """What a front end itself keeps alive: results of cells, and the frames of the last traceback."""

    def traceback_names(self) -> dict[str, Any]:
        """Return what the functions of the last traceback still hold, by a name that says where."""

    def drop(self, number: int) -> None:
        """Drop the result of the cell with this number."""

    def clear_last_traceback(self) -> None:
        """Let go of what the functions of the last traceback hold."""
