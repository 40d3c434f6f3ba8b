"""List the tensors and arrays of a session, and release those in its history."""

from __future__ import annotations

import gc
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.text import counted, format_nbytes

if TYPE_CHECKING:
    from tensornp.core.memory.storages import Survey
    from tensornp.core.summary.census import Census

MAX_SECONDS, MAX_RELEASE_SECONDS = 2.0, 20.0
"""For a table, and for a release, which must search all names to the end."""
_IN_HISTORY = re.compile(r"(?:Out|_oh)\[(\d+)\]")


def census(session: Any, *, max_rows: int, patterns: tuple[str, ...]) -> Census:
    """Return the tensors and arrays in names, history and the last traceback."""
    from tensornp.core.lowlevel.modes import outside_modes
    from tensornp.core.summary.census import census_of

    with outside_modes():
        survey = _survey(session, MAX_SECONDS)
        return census_of(survey, max_rows=max_rows, patterns=patterns)


def release(session: Any) -> str:
    """Release objects in the history and the last traceback; return a report.

    Nothing is released if the search for names was not complete, as a name may reach the objects.
    """
    from tensornp.core.lowlevel.modes import outside_modes
    from tensornp.core.memory.extents import nbytes_by_device
    from tensornp.core.memory.identity import freed_test
    from tensornp.core.memory.storages import history_entry

    with outside_modes():
        survey = _survey(session, MAX_RELEASE_SECONDS)
        if not survey.has_all_names:
            return f"nothing was released: {survey.stopped}; %reset -f out drops all results"
        groups = [one for one in survey.groups if one.nbytes and all(f.holding != "name" for f in one.found)]
        entries = {history_entry(f.path) for group in groups for f in group.found if f.holding == "history"}
        numbers = dict(sorted((int(found[1]), found[0]) for found in map(_IN_HISTORY.fullmatch, entries) if found))
        is_in_traceback = any(f.holding == "traceback" for group in groups for f in group.found)
        memory = [([freed_test(f.obj) for f in group.found], nbytes_by_device(group.spans)) for group in groups]
        # They hold what is released here.
        del survey, groups
    held = [*numbers.values()] + ["the locals of the last traceback"] * is_in_traceback
    if not held:
        return "nothing to release: every tensor and array here has a name of yours"
    for number in numbers:
        session.drop(number)
    if is_in_traceback:
        session.clear_last_traceback()
    gc.collect()
    freed, kept = Counter[str](), 0
    for tests, nbytes in memory:
        if all(is_freed() for is_freed in tests):
            freed.update(nbytes)
        else:
            kept += sum(nbytes.values())
    came = ", ".join(f"{counted(nbytes, 'byte')} on {device}" for device, nbytes in freed.items() if nbytes)
    still = f"; {format_nbytes(kept)} are still held elsewhere" if kept else ""
    return f"released {', '.join(held)}: {came or 'nothing'} came free{still}"


def _survey(session: Any, max_seconds: float) -> Survey:
    from tensornp.core.memory.storages import Survey

    return Survey(session.names, session.traceback_names(), max_seconds)
