"""Open folders of weights that accelerate has offloaded, with an index of shapes."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.files.address import why_outside
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.names.quoted import shown_name, shown_names
from tensornp.models.opening.files import UNREADABLE, json_in

OFFLOAD_INDEX, OFFLOAD_SUFFIX = "index.json", ".dat"


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
        return weight_in(_source(path, name, told), name, code)
    except UNREADABLE as error:
        return nothing(name, "tensor", code, str(error), str(folder))


def _source(path: str, name: str, told: dict[str, Any]) -> FileSource:
    """Return the elements; CheckpointError if too few are there, or outside of the folder."""
    shape, dtype = told.get("shape"), told.get("dtype")
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
        raise CheckpointError("accelerate's index has no shape of it")
    if dtype not in KNOWN:
        raise CheckpointError(f"accelerate's index has a dtype of it that is not known, {shown_name(str(dtype))}")
    if why := why_outside(f"{name}{OFFLOAD_SUFFIX}"):
        raise CheckpointError(why)
    file = SourceFile.at(path)
    needed = math.prod(shape) * stored_dtype(dtype).itemsize
    if needed > file.nbytes:
        raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {needed:,} are needed")
    return FileSource(tuple(shape), dtype, file, 0)
