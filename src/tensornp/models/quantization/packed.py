"""A weight whose elements are codes that a packed format lays out: they are read, and never counted."""

from __future__ import annotations

from typing import NoReturn

from tensornp.core.values.stats.tasks import Tally
from tensornp.errors import NoDataError
from tensornp.models.entries.file import FileEntry
from tensornp.models.names.quoted import shown_name


class PackedEntry(FileEntry):
    """Codes as they are stored; `num_parameters` tells how many weights they are, or is None where nothing tells."""

    __slots__ = ("_num_parameters",)

    def __init__(self, codes: FileEntry, note: str, num_parameters: int | None) -> None:
        self._begin_as(codes)
        self.note, self._num_parameters = note, num_parameters

    @property
    def num_parameters(self) -> int | None:
        """How many weights are packed."""
        return self._num_parameters

    def stats(self) -> NoReturn:
        """Raise NoDataError: what codes mean is told by the format alone."""
        raise NoDataError(
            f"{shown_name(self.name)} has {self.note}, whose statistics mean nothing; to_numpy gives them"
        )

    def num_tasks(self) -> int:
        """Return 0: there is nothing to count."""
        return 0

    def tally(self, number: int) -> Tally:
        """Raise NoDataError."""
        self.stats()
