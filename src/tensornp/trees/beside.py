"""One safetensors file as entries, and the JSON that lies beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.trees import adapters
from tensornp.trees.dcp_files import saved_offsets
from tensornp.trees.entry import WeightEntry
from tensornp.trees.file_entry import FileEntry
from tensornp.trees.lookalikes import NUM_LOOKED_AT, what_it_seems
from tensornp.trees.safetensors import Header, read_header
from tensornp.trees.source_file import SourceFile

UNREADABLE = (CheckpointError, ChangedFileError)
"""What one file raises, and hides no other."""
SUFFIX = ".safetensors"
TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
"""By which nothing is decided: a file is read as what it begins as."""
CONFIG = "config.json"
_MAX_JSON_NBYTES = 100_000_000


def header_of(file: SourceFile) -> Header:
    """Return what the header of a safetensors file says; CheckpointError, with what the file seems to be instead."""
    try:
        return read_header(file)
    except CheckpointError:
        seems = what_it_seems(file.read(0, min(file.nbytes, NUM_LOOKED_AT)))
        if seems:
            raise CheckpointError(f"{file.path!r} seems to be {seems}") from None
        if file.path.endswith(TORCH_SUFFIXES):
            raise CheckpointError(
                f"{file.path!r} is neither a file of torch.save nor a sound one of safetensors"
            ) from None
        raise


def entries_in(file: SourceFile, header: Header) -> Iterator[WeightEntry]:
    """Yield the weights of a file."""
    begins = saved_offsets(header.metadata)
    for tensor in header.tensors:
        code = f"safetensors.safe_open({file.path!r}, 'pt').get_tensor({tensor.name!r})"
        entry = FileEntry(tensor.name, tensor.shape, tensor.dtype, code, file, tensor.offset)
        entry.nbytes = tensor.nbytes
        entry.problem = tensor.problem or entry.problem
        if any(begins.get(tensor.name, ())):
            entry.note = f"a chunk of a tensor, from {begins[tensor.name]} on"
        yield entry


def config_beside(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the configurations that lie in the folder, as `config` and `adapter_config`, and what is wrong."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name in (CONFIG, adapters.CONFIG):
        path = folder / name
        try:
            found[path.stem] = json_in(path)
        except UNREADABLE as error:
            problems += [str(error)] if os.path.lexists(path) else []
    return found, problems


def json_in(path: Path) -> dict[str, Any]:
    """Return the mapping in a file of JSON; CheckpointError if it has none."""
    file = SourceFile.at(path)
    if file.nbytes > _MAX_JSON_NBYTES:
        raise CheckpointError(f"{str(path)!r} has {file.nbytes:,} bytes, and {_MAX_JSON_NBYTES:,} are read")
    try:
        told = json.loads(file.read(0, file.nbytes))
    except (ValueError, RecursionError):
        raise CheckpointError(f"{str(path)!r} is no JSON that can be read") from None
    if not isinstance(told, dict):
        raise CheckpointError(f"{str(path)!r} holds no mapping")
    return told
