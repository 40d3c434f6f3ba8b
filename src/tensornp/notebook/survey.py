"""`%tensors`: the namespace as a table, and what IPython's history alone holds let go."""

from __future__ import annotations

import gc
import re
import weakref
from typing import TYPE_CHECKING, Any

from tensornp.notebook.history import History

if TYPE_CHECKING:
    from tensornp.core.census import Census
    from tensornp.core.groups import Found
    from tensornp.core.survey import Survey
    from tensornp.notebook.ledger import Ledger

MAX_SECONDS = 2.0
_IN_HISTORY = re.compile(r"Out\[\d+\]")


class Surveyor:
    """Takes the census of one shell."""

    def __init__(self, shell: Any, ledger: Ledger) -> None:
        self._shell = shell
        self._ledger = ledger
        self._history = History(shell)

    def census(self, *, max_rows: int, sort: str, patterns: tuple[str, ...]) -> Census:
        """Return the table of what the notebook's names, its history and its last traceback reach."""
        return self._survey().census(
            max_rows=max_rows,
            sort=sort,
            patterns=patterns,
            also=self._history.other_names(),
            change_of=self._ledger.change_of,
        )

    def release(self) -> str:
        """Drop what only IPython's history and the last traceback hold; return what that was and what came free.

        A name of the user's is never touched, and what it reaches stays.
        """
        from tensornp.core.groups import history_entry
        from tensornp.render.badges import format_nbytes

        survey = self._survey()
        unnamed = [group for group in survey.unnamed() if not any(map(_is_of_the_user, group.found))]
        entries = sorted({history_entry(f.path) for g in unnamed for f in g.found if f.holding == "history"})
        in_traceback = any(found.holding == "traceback" for group in unnamed for found in group.found)
        if not entries and not in_traceback:
            return "nothing to release: every tensor and array here has a name of yours"
        for entry in entries:
            self._history.drop(entry)
        if in_traceback:
            self._history.clear_last_traceback()
        watched = [([found.obj for found in group.found], group.nbytes_by_device()) for group in unnamed]
        # The paths of a survey hold the parameters that are keys of an optimizer's state.
        del survey, unnamed
        gc.collect()
        freed: dict[str, int] = {}
        kept = 0
        for objects, nbytes_by_device in watched:
            is_gone = all(type(obj) is weakref.ref and obj() is None for obj in objects)
            for device, nbytes in nbytes_by_device.items():
                freed[device] = freed.get(device, 0) + nbytes * is_gone
                kept += nbytes * (not is_gone)
        freed = {device: nbytes for device, nbytes in freed.items() if nbytes}
        dropped = [*entries, *(["the locals of the last traceback"] if in_traceback else [])]
        came = ", ".join(f"{format_nbytes(nbytes)} ({nbytes:,} bytes) on {device}" for device, nbytes in freed.items())
        still = f"; {format_nbytes(kept)} are still held elsewhere" if kept else ""
        return f"released {', '.join(dropped)}: {came or 'nothing'} came free{still}"

    def _survey(self) -> Survey:
        from tensornp.core.survey import Survey

        return Survey(self._shell.user_ns, self._history.traceback_names(), MAX_SECONDS)


def _is_of_the_user(found: Found) -> bool:
    """Return whether the user has put it into `Out`, under a key that IPython would not make."""
    from tensornp.core.groups import history_entry

    return found.holding == "history" and _IN_HISTORY.fullmatch(history_entry(found.path)) is None
