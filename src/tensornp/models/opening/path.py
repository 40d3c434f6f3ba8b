"""Open a file of weights, an index, or a folder at a path or an address."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tensornp.core.lowlevel.collector import uncollected
from tensornp.errors import CheckpointError
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.files.address import Address, Place, is_address, shown_path
from tensornp.models.files.source_file import AbsentError, reason_of
from tensornp.models.formats.table import ITEMS_SUFFIX, METADATA, Contents
from tensornp.models.names.quoted import MAX_TOLD, closest, cut
from tensornp.models.opening import files

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
        found = _open(Path(_found(typed)))
    return WeightsExplorer(found.entries, typed, metadata=found.metadata, problems=found.problems)


def _found(typed: str) -> str:
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
        raise CheckpointError(f"'{cut(shown_path(typed), MAX_TOLD)}' cannot be opened: {reason_of(error)}") from None
    # Not normalized: what is above a symbolic link is not what its name says.
    return os.path.join(os.getcwd(), typed)


def _open_address(there: Address) -> Contents:
    found = _open(there) if there.name else _open_folder_at(there)
    # Without its secrets, the address would not reach it.
    shown = "" if str(there) != there.url else f"tnp.weights({there.url!r})"
    entries = [one._with_(code=shown and f"{shown}[{one.name!r}].to_numpy()") for one in found.entries]
    return found._replace(entries=entries)


def _open_folder_at(there: Address) -> Contents:
    for name in _ASKED_FOR:
        try:
            return _open(there / name)
        except AbsentError:
            continue
    names = ", ".join(_ASKED_FOR)
    raise CheckpointError(f"{str(there)!r} gives out none of {names}; name the file, or the index of several")


def _open(there: Place) -> Contents:
    if isinstance(there, Path) and os.path.isdir(there):
        from tensornp.models.opening.folder import open_folder

        return open_folder(there)
    if there.name == METADATA:
        from tensornp.models.formats.dcp import open_dcp

        return files.with_config(open_dcp(there.parent), there.parent)
    if there.name.endswith(ITEMS_SUFFIX):
        raise CheckpointError(f"{str(there)!r} holds items of torch.distributed.checkpoint; open its folder")
    if files.is_index(there.name):
        return files.open_index(there)
    if isinstance(there, Path) and there.name == files.OFFLOAD_INDEX:
        return files.open_offload_folder(there.parent)
    return files.open_file(there)
