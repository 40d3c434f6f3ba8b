"""The names of a session as a table, and what its history alone holds let go."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING

from tensornp.core.lowlevel.units import format_nbytes
from tensornp.session.names import History, Session

if TYPE_CHECKING:
    from tensornp.core.memory.storages import Found
    from tensornp.core.memory.survey import Survey
    from tensornp.core.summary.census import Census
    from tensornp.session.ledger import Ledger

MAX_SECONDS = 2.0
MAX_RELEASE_SECONDS = 20.0
"""For the names to be searched to their end, before which nothing can be said to have none."""
_IN_HISTORY = re.compile(r"(?:Out|_oh)\[(\d+)\]")


class Surveyor:
    """Takes the census of one session."""

    def __init__(self, session: Session, history: History, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger
        self._history = history

    def census(
        self, *, max_rows: int, sort: str, patterns: tuple[str, ...], is_changed: bool = False, **limits: int
    ) -> Census:
        """Return the table of what the notebook's names, its history and its last traceback reach.

        With `is_changed`, of what has changed since it was last shown or converted.
        """
        from tensornp.core.lowlevel.modes import undisturbed
        from tensornp.core.summary.census import census_of

        with undisturbed():
            return census_of(
                self._survey(MAX_SECONDS),
                max_rows=max_rows,
                sort=sort,
                patterns=patterns,
                is_changed=is_changed,
                change_of=self._ledger.change_of,
                **limits,
            )

    def release(self) -> str:
        """Drop what only IPython's history and the last traceback hold; return what that was and what came free.

        A name of the user's is never touched, and what it reaches stays. Where not all names could be searched,
        nothing is dropped.
        """
        from tensornp.core.lowlevel.modes import undisturbed

        with undisturbed():
            waste = _Waste(self._survey(MAX_RELEASE_SECONDS))
        if waste.stopped:
            return (
                f"nothing was released: {waste.stopped}, so {waste.text or 'what Out holds'} may still have a name of "
                "yours; %reset -f out drops all results"
            )
        if not waste.text:
            return "nothing to release: every tensor and array here has a name of yours"
        for number in waste.entries:
            self._history.drop(number)
        if waste.is_in_traceback:
            self._history.clear_last_traceback()
        gc.collect()
        freed: dict[str, int] = {}
        kept = 0
        for references, nbytes_by_device in waste.memory:
            is_gone = all(reference.is_gone for reference in references)
            for device, nbytes in nbytes_by_device.items():
                freed[device] = freed.get(device, 0) + nbytes * is_gone
                kept += nbytes * (not is_gone)
        freed = {device: nbytes for device, nbytes in freed.items() if nbytes}
        came = ", ".join(f"{_exact(nbytes)} on {device}" for device, nbytes in freed.items())
        still = f"; {format_nbytes(kept)} are still held elsewhere" if kept else ""
        return f"released {waste.text}: {came or 'nothing'} came free{still}"

    def _survey(self, max_seconds: float) -> Survey:
        from tensornp.core.memory.survey import Survey

        return Survey(self._session.names, self._history.traceback_names(), max_seconds, self._history.other_names())


class _Waste:
    """What no name of the user's reaches, as text and as references that keep none of it alive.

    Attributes
    ----------
    entries : dict of int to str
        Of IPython's history, by the number of the cell: "Out[3]".
    is_in_traceback : bool
        Whether the last traceback holds some of it.
    memory : list
        For each group, references to its memory, and its bytes by device.
    stopped : str
        How the search for names of the user's ended before it was through, or empty.
    """

    def __init__(self, survey: Survey) -> None:
        from tensornp.core.memory.identity import MemoryReference
        from tensornp.core.memory.storages import history_entry

        groups = [group for group in survey.unnamed() if not any(map(_is_of_the_user, group.found))]
        found = [found for group in groups for found in group.found]
        entries = {history_entry(f.path) for f in found if f.holding == "history"}
        self.entries = dict(sorted((_number(entry), entry) for entry in entries))
        self.is_in_traceback = any(f.holding == "traceback" for f in found)
        self.memory = [
            ([MemoryReference(found.obj) for found in group.found], group.nbytes_by_device()) for group in groups
        ]
        self.stopped = "" if survey.has_all_names else survey.stopped

    @property
    def text(self) -> str:
        """What holds it: "Out[3], Out[4], the locals of the last traceback"; empty if nothing does."""
        return ", ".join(
            [*self.entries.values(), *(["the locals of the last traceback"] if self.is_in_traceback else [])]
        )


def _exact(nbytes: int) -> str:
    """Return bytes in the unit that reads best, and all of them behind it, where it is another."""
    said = format_nbytes(nbytes)
    return said if said.endswith(("byte", "bytes")) else f"{said} ({nbytes:,} bytes)"


def _number(entry: str) -> int:
    """Return the number of the cell of an entry; -1 where the user has put it there, under a key of another kind."""
    found = _IN_HISTORY.fullmatch(entry)
    return int(found[1]) if found else -1


def _is_of_the_user(found: Found) -> bool:
    """Return whether the user has put it into the history, under a key that IPython would not make."""
    from tensornp.core.memory.storages import history_entry

    return found.holding == "history" and _number(history_entry(found.path)) < 0
