"""Weights that accelerate has offloaded: bare elements, and an index of shapes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.files.address import why_outside
from tensornp.models.files.source_file import SourceFile
from tensornp.models.names.quoted import shown_name

OFFLOAD_INDEX = "index.json"
OFFLOAD_SUFFIX = ".dat"


def offloaded_file(folder: Any, name: str, told: Mapping[str, Any]) -> tuple[tuple[int, ...], str, SourceFile]:
    """Return the shape, the dtype and the file of a weight that an index tells of.

    CheckpointError if it has too few bytes, or would lie outside of the folder.
    """
    shape, dtype = told.get("shape"), told.get("dtype")
    if not isinstance(shape, (list, tuple)) or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
        raise CheckpointError("accelerate's index has no shape of it")
    if dtype not in KNOWN:
        raise CheckpointError(f"accelerate's index has a dtype of it that is not known, {shown_name(str(dtype))}")
    place = f"{name}{OFFLOAD_SUFFIX}"
    if why := why_outside(place):
        raise CheckpointError(why)
    file = SourceFile.at(os.path.join(folder, place))
    needed = math.prod(shape) * stored_dtype(dtype).itemsize
    if needed > file.nbytes:
        raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {needed:,} are needed")
    return tuple(shape), dtype, file
