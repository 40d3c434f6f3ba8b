"""Open a folder of weights: its model and the components in its subfolders.

One rule says, for each folder, which files are its model. Linked folders are not entered.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.models.entries.entry import NotListed, NotOfModule
from tensornp.models.formats.table import ITEMS_SUFFIX, METADATA, MODEL_SUFFIXES, SAFETENSORS, Contents, problem_of_part
from tensornp.models.names.quoted import shown_names
from tensornp.models.opening import files

_MAX_FOLDERS = 5_000
_TORCH = ".bin"
_SEVERAL_FILES = (SAFETENSORS, _TORCH, ".gguf")
"""The suffixes of models in several files, the preferred one first."""
_OF_COMPONENT = re.compile(rf".*{re.escape(SAFETENSORS)}|.*model.*{re.escape(_TORCH)}")
"""The files of weights that a component has: others below a model that end in ``.bin`` or ``.pt`` may be any data."""
_OPTIMIZER = re.compile(r"optimizer(_\d+)?\.(bin|pt)")
_CHECKPOINT = re.compile(r"((?:.*/)?(?:checkpoint|epoch|(?:global_?)?step)s?(?:[-_=]?\d+)?)/.*")
"""Paths in folders to which a training saves from time to time."""
_NO_WEIGHTS = re.compile(r"training_args\.bin|scheduler(_\d+)?\.(bin|pt)|scaler\.pt|rng_state(_\d+)?\.pth")
"""Files that a training saves: its arguments, and the state of objects that have no tensors."""


def open_folder(folder: Path) -> Contents:
    """Return the weights of a folder and of the components below it.

    Training checkpoints are components only if nothing else is there. Files that are not read are a problem.
    """
    names, problems = _files_below(folder)
    found: dict[str, Contents] = {}
    wrong: dict[str, CheckpointError | ChangedFileError] = {}
    left: list[str] = []
    taken: set[str] = set()
    for at, there in names.items():
        own = [name for name in there if not at or _OF_COMPONENT.fullmatch(name) or not _may_have_weights(name)]
        try:
            opened = _model_in(folder / at, own)
        except files.UNREADABLE as error:
            problems.append(NotListed(error))
            wrong.setdefault(at, error)
            continue
        if opened is not None:
            found[at], read = opened
            taken.update(at + name for name in read)
        left += [at + name for name in there if _may_have_weights(name) and at + name not in taken]
    lasting = {at: one for at, one in found.items() if not _checkpoint_of(at)}
    if not lasting and ("" in wrong or (wrong and not found)):
        raise next(iter(wrong.values()))
    if not found:
        why = f"{str(folder)!r} has no file of weights, nor a folder with a {SAFETENSORS} or {_TORCH} file"
        raise CheckpointError(problems[0] if problems else why)
    if lasting:
        saved = {_checkpoint_of(path) for path in [*found, *left]} - {""}
        found, left = lasting, [*sorted(saved), *(path for path in left if not _checkpoint_of(path))]
    whole = _joined(found)
    if left:
        are, cure = ("is", "it by its path") if len(left) == 1 else ("are", "them by their paths")
        problems.append(NotOfModule(f"{shown_names(left)} {are} not listed; open {cure}"))
    return whole._replace(problems=[*problems, *whole.problems])


def _files_below(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    found: dict[str, list[str]] = {}
    problems: list[str] = []

    def not_listed(error: OSError) -> None:
        problems.append(NotListed(f"{error.filename!r} cannot be listed: {error.strerror}"))

    for at, folders, there in islice(os.walk(str(folder), onerror=not_listed), _MAX_FOLDERS):
        # A hidden folder is a cache, or the history of a repository.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        path = Path(at).relative_to(folder).as_posix()
        found["" if path == "." else f"{path}/"] = sorted(there)
    if len(found) == _MAX_FOLDERS:
        problems.append(NotListed(f"{str(folder)!r} has {_MAX_FOLDERS:,} folders or more, and not all are looked into"))
    return found, problems


def _model_in(folder: Path, names: list[str]) -> tuple[Contents, list[str]] | None:
    """Return the model of a folder, if there is one, and the names of its files."""
    if METADATA in names:
        return files.open_file(folder / METADATA), []
    if any(name.endswith(ITEMS_SUFFIX) for name in names):
        raise CheckpointError(f"{str(folder)!r} has {ITEMS_SUFFIX} files, and no .metadata that tells what they hold")
    indices = [name for name in names if files.is_index(name)]
    for suffix in _SEVERAL_FILES:
        there = [name for name in names if name.endswith(suffix)]
        own = [name for name in indices if suffix in name]
        if own and there:
            return _open_index(folder, _one_of(folder, own))
        parts = files.parts_among(there)
        if parts and (len(parts) == len(there) or suffix != SAFETENSORS):
            return files.open_parts(folder, parts), [part[0] for part in parts]
        if there and suffix == SAFETENSORS:
            name = _one_of(folder, there)
            return files.open_file(folder / name), [name]
    if indices:
        return _open_index(folder, _one_of(folder, indices))
    if files.OFFLOAD_INDEX in names and any(name.endswith(files.OFFLOAD_SUFFIX) for name in names):
        return files.open_offload_folder(folder), []
    others = [name for name in names if _may_have_weights(name)]
    others = [name for name in others if not _OPTIMIZER.fullmatch(name)] or others
    if len(others) > 1:
        raise _several(folder, others)
    return (files.open_file(folder / others[0]), others) if others else None


def _one_of(folder: Path, names: list[str]) -> str:
    """Return the shortest name, such as ``model.safetensors``; others are variants."""
    shortest = min(names, key=len)
    if any(not name.startswith(f"{Path(shortest).stem}.") for name in names):
        raise _several(folder, names)
    return shortest


def _several(folder: Path, names: list[str]) -> CheckpointError:
    return CheckpointError(f"{str(folder)!r} has several: {shown_names(names)}; name one of them")


def _open_index(folder: Path, name: str) -> tuple[Contents, list[str]]:
    found = files.open_index(folder / name)
    return found, [Path(os.path.relpath(folder / one.location, folder)).as_posix() for one in found.entries]


def _joined(found: dict[str, Contents]) -> Contents:
    whole = found.get("", Contents([], {}, []))
    entries, metadata, problems = [*whole.entries], whole.metadata, [*whole.problems]
    for at, component in found.items():
        if at:
            prefix = at.replace("/", ".")
            for one in component.entries:
                tied = tuple(prefix + other for other in one.tied_to)
                entries.append(one._with_(name=prefix + one.name, tied_to=tied))
            metadata = files.with_more(metadata, component.metadata, prefix)
            problems += [problem_of_part(prefix.rstrip("."), problem) for problem in component.problems]
    return Contents(entries, metadata, problems)


def _may_have_weights(name: str) -> bool:
    return name.lower().endswith(MODEL_SUFFIXES) and not _NO_WEIGHTS.fullmatch(name)


def _checkpoint_of(path: str) -> str:
    found = _CHECKPOINT.fullmatch(path)
    return found[1] if found else ""
