"""Open a file of weights, an index, or a folder at a path or an address."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tensornp.core.lowlevel.collector import uncollected
from tensornp.errors import CheckpointError
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.files.address import Address, is_address, shown_path
from tensornp.models.files.source_file import AbsentError, reason_of
from tensornp.models.formats.table import METADATA, Contents
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, closest, cut
from tensornp.models.opening import files
from tensornp.models.opening.folder import open_folder

_ASKED_FOR = ("model.safetensors.index.json", "model.safetensors", "adapter_model.safetensors", METADATA)
"""Names that are tried in a folder at an address, since a server of the web does not list it."""


@uncollected()
def open_checkpoint(path: str | os.PathLike[str]) -> WeightsExplorer:
    """Return the explorer of a file, an index, a folder or an address."""
    typed = os.path.expanduser(os.fsdecode(path))
    if is_address(typed):
        there = Address(typed.strip())
        found, typed = _open_address(there), str(there)
    else:
        typed = str(Path(typed))
        here = _found(typed)
        found = open_folder(here) if os.path.isdir(here) else files.open_file(here)
    return WeightsExplorer(found.entries, typed, metadata=found.metadata, problems=found.problems)


def _found(typed: str) -> Path:
    try:
        os.lstat(typed)
    except (FileNotFoundError, NotADirectoryError):
        folder, name = os.path.split(typed)
        beside: list[str] = []
        with suppress(OSError):
            beside = os.listdir(folder or ".")
        raise CheckpointError(f"there is no '{cut(shown_path(typed), MAX_TOLD)}'{closest(name, beside)}") from None
    except (OSError, ValueError) as error:
        # It may be too long.
        raise CheckpointError(f"'{cut(shown_path(typed), MAX_SHOWN)}' cannot be opened: {reason_of(error)}") from None
    # Not normalized: what is above a symbolic link is not what its name says.
    return Path(os.getcwd(), typed)


def _open_address(there: Address) -> Contents:
    found = files.open_file(there) if there.name else _open_folder_at(there)
    # Without its secrets, the address would not reach it.
    shown = "" if str(there) != there.url else f"tnp.weights({there.url!r})"
    entries = [one._with_(code=shown and f"{shown}[{one.name!r}].to_numpy()") for one in found.entries]
    return found._replace(entries=entries)


def _open_folder_at(there: Address) -> Contents:
    for name in _ASKED_FOR:
        try:
            return files.open_file(there / name)
        except AbsentError:
            continue
    names = ", ".join(_ASKED_FOR)
    raise CheckpointError(f"{str(there)!r} gives out none of {names}; name the file, or the index of several")
