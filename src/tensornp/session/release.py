"""Release the tensors and arrays in the history of a session."""

from __future__ import annotations

import gc
import re
from collections import Counter
from typing import Any

from tensornp.core.lowlevel.text import counted, format_nbytes

MAX_SECONDS = 20.0
"""For a release, which must search all names to the end."""
_IN_HISTORY = re.compile(r"(?:Out|_oh)\[(\d+)\]")


def release(session: Any) -> str:
    """Release objects in the history; return a report.

    Nothing is released if the search for names was not complete, as a name may reach the objects.
    """
    from tensornp.core.lowlevel.modes import outside_modes
    from tensornp.core.memory.extents import nbytes_by_device
    from tensornp.core.memory.identity import MemoryReference
    from tensornp.core.memory.storages import Survey, history_entry

    with outside_modes():
        survey = Survey(session.names, MAX_SECONDS)
        if not survey.has_all_names:
            return f"nothing was released: {survey.stopped}; %reset -f out drops all results"
        groups = [one for one in survey.groups if one.nbytes and all(found.holding == "history" for found in one.found)]
        entries = {history_entry(found.path) for group in groups for found in group.found}
        numbers = dict(sorted((int(found[1]), found[0]) for found in map(_IN_HISTORY.fullmatch, entries) if found))
        memory = [([MemoryReference(f.obj) for f in group.found], nbytes_by_device(group.spans)) for group in groups]
        # They hold what is released here.
        del survey, groups
    if not numbers:
        return "nothing to release: every tensor and array here has a name of yours"
    for number in numbers:
        session.drop(number)
    gc.collect()
    freed, kept = Counter[str](), 0
    for references, nbytes in memory:
        if all(reference.is_gone for reference in references):
            freed.update(nbytes)
        else:
            kept += sum(nbytes.values())
    came = ", ".join(f"{counted(nbytes, 'byte')} on {device}" for device, nbytes in freed.items() if nbytes)
    still = f"; {format_nbytes(kept)} are still held elsewhere" if kept else ""
    return f"released {', '.join(numbers.values())}: {came or 'nothing'} came free{still}"
