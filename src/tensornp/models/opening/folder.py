"""A folder of weights: which of its files are those of the model."""

from __future__ import annotations

import os
from pathlib import Path

from tensornp.errors import CheckpointError
from tensornp.models.files.address import Place
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.dcp.names import ITEMS_SUFFIX, METADATA
from tensornp.models.formats.offloaded import OFFLOAD_INDEX, OFFLOAD_SUFFIX
from tensornp.models.formats.table import INDEX_SUFFIX, SAFETENSORS
from tensornp.models.names.quoted import shown_names
from tensornp.models.opening.below import Below
from tensornp.models.opening.index import open_index
from tensornp.models.opening.offload_index import open_offload_folder
from tensornp.models.opening.one_file import open_file
from tensornp.models.opening.shards import are_shards, open_together, shards_among

_TORCH_SUFFIX = ".bin"
_Top = tuple[Contents, list[str]]
"""What the files at the top of a folder hold, and which of them were read."""


def open_folder(folder: Path) -> Contents:
    """Return what the weights of a folder are, those of its components below their names; what it passes over is told.

    CheckpointError if it has none, or several candidates.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise CheckpointError(f"{str(folder)!r} cannot be listed: {error.strerror}") from None
    below = Below(folder)
    if METADATA in names:
        return _with_problems(open_dcp(folder), below.passed_over([]))
    if any(name.endswith(ITEMS_SUFFIX) for name in names):
        raise CheckpointError(f"{str(folder)!r} has {ITEMS_SUFFIX} files, and no .metadata that tells what they hold")
    top = _of_safetensors(folder, names) or _of_torch(folder, names)
    if top is None and OFFLOAD_INDEX in names and _ending(names, OFFLOAD_SUFFIX):
        top = open_offload_folder(folder), []
    if top is None:
        top = _of_others(folder, below)
    parts = below.components(has_top=top is not None)
    if top is None and not parts:
        why = f"has no file of weights, nor a folder with a {SAFETENSORS} or {_TORCH_SUFFIX} file"
        raise CheckpointError(f"{str(folder)!r} {why}")
    found, taken = top or (None, [])
    whole = open_together(folder, parts, found) if parts or found is None else found
    return _with_problems(whole, below.passed_over([*taken, *parts]))


def _with_problems(found: Contents, problems: list[str]) -> Contents:
    return found._replace(problems=[*found.problems, *problems])


def _of_safetensors(folder: Path, names: list[str]) -> _Top | None:
    """Return what the safetensors files hold, and their names; None where there are none."""
    indices, files = _ending(names, SAFETENSORS + INDEX_SUFFIX), _ending(names, SAFETENSORS)
    if not files and _has_torch_shards(names):
        # Of both kinds that the hub has, these were brought here; the other one left its index.
        return None
    if len(indices) == 1:
        return _open_index(folder, indices[0])
    if len(indices) > 1 or (len(files) > 1 and not are_shards(files)):
        raise _several(folder, indices or files)
    return (open_together(folder, dict.fromkeys(files, "")), files) if files else None


def _open_index(folder: Path, name: str) -> _Top:
    found = open_index(folder / name)
    return found, [os.path.relpath(folder / one.location, folder).replace(os.sep, "/") for one in found.entries]


def _has_torch_shards(names: list[str]) -> bool:
    has_index = bool(_ending(names, _TORCH_SUFFIX + INDEX_SUFFIX) and _ending(names, _TORCH_SUFFIX))
    return has_index or are_shards(shards_among(names, _TORCH_SUFFIX))


def _of_torch(folder: Path, names: list[str]) -> _Top | None:
    """Return what the shards of torch hold, and their names; None where there are none, but perhaps others of torch."""
    indices, parts = _ending(names, _TORCH_SUFFIX + INDEX_SUFFIX), shards_among(names, _TORCH_SUFFIX)
    if len(indices) == 1:
        return _open_index(folder, indices[0])
    if indices:
        raise _several(folder, indices)
    return (open_together(folder, dict.fromkeys(parts, "")), parts) if are_shards(parts) else None


def _of_others(folder: Path, below: Below) -> _Top | None:
    """Return what the one file of another kind holds, and its name; None where there are components alone."""
    names = below.at_top()
    if len(names) == 1:
        return open_file(folder / names[0]), names
    if names and not below.components(has_top=True):
        raise _several(folder, names)
    return None


def _ending(names: list[str], suffix: str) -> list[str]:
    return [name for name in names if name.endswith(suffix)]


def open_dcp(folder: Place) -> Contents:
    """Return the contents of a folder of torch.distributed.checkpoint."""
    from tensornp.models.formats.dcp.checkpoint import Checkpoint

    found = Checkpoint(folder)
    problems = [*found.problems, *problems_of(found.unread())]
    return Contents(found.entries, found.values, problems, found.optimizers)


def _several(folder: Path, names: list[str]) -> CheckpointError:
    return CheckpointError(f"{str(folder)!r} has several: {shown_names(names)}; name one of them")
