"""Open folders of weights that accelerate has offloaded, one file for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.offloaded import OFFLOAD_INDEX, OFFLOAD_SUFFIX, offloaded_file
from tensornp.models.names.quoted import shown_names
from tensornp.models.opening.config import UNREADABLE, json_in


def open_offload_folder(folder: Path) -> Contents:
    """Return the weights that accelerate has offloaded to a folder."""
    path = folder / OFFLOAD_INDEX
    told = json_in(path)
    if not told or not all(isinstance(one, dict) and "dtype" in one for one in told.values()):
        raise CheckpointError(f"{str(path)!r} is not an index of weights offloaded by accelerate")
    entries = [_entry(folder, name, one) for name, one in told.items()]
    others = sorted(name for name in os.listdir(folder) if name.removesuffix(OFFLOAD_SUFFIX) not in told)
    left = [name for name in others if name.endswith(OFFLOAD_SUFFIX)]
    problems = [NotListed(f"{shown_names(left)} not in its index, and not listed")] if left else []
    return Contents(entries, {}, [*problems, *problems_of(entries)])


def _entry(folder: Path, name: str, told: dict[str, Any]) -> WeightEntry:
    path = os.path.join(folder, f"{name}{OFFLOAD_SUFFIX}")
    code = f"accelerate.utils.offload.load_offloaded_weight({path!r}, {told!r})"
    try:
        shape, dtype, file = offloaded_file(folder, name, told)
    except UNREADABLE as error:
        return nothing(name, "tensor", code, str(error), str(folder))
    return weight_in(FileSource(shape, dtype, file, 0), name, code)
