"""What lies at an address: a file of weights, an index of several, or a folder that has one of usual names."""

from __future__ import annotations

from tensornp.errors import CheckpointError
from tensornp.models.files.address import AbsentError, Address
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.dcp.names import ITEMS_SUFFIX, METADATA
from tensornp.models.formats.table import INDEX_SUFFIX
from tensornp.models.opening.folder import open_dcp
from tensornp.models.opening.index import open_index
from tensornp.models.opening.one_file import open_file

_IN_FOLDER = ("model.safetensors.index.json", "model.safetensors", "adapter_model.safetensors", METADATA)
"""What a folder is asked for, since a server of the web does not list it."""


def open_address(there: Address) -> Contents:
    """Return what lies at an address, with a `code` for each weight that reads it from there.

    CheckpointError if nothing is there that is understood, or if it is not given out in parts.
    """
    found = _open(there)
    # What hides a part of the address would not reach it.
    shown = "" if there.has_secrets else f"tnp.weights({there.url!r})"
    entries = [one._with_(code=shown and f"{shown}[{one.name!r}].to_numpy()") for one in found.entries]
    return found._replace(entries=entries)


def _open(there: Address) -> Contents:
    if there.name == METADATA:
        return open_dcp(there.parent)
    if there.name.endswith(ITEMS_SUFFIX):
        raise CheckpointError(f"{str(there)!r} holds items of torch.distributed.checkpoint; open its folder")
    if there.name.endswith(INDEX_SUFFIX):
        return open_index(there)
    if there.name:
        return open_file(there)
    for name in _IN_FOLDER:
        try:
            return _open(there / name)
        except AbsentError:
            continue
    names = ", ".join(_IN_FOLDER)
    raise CheckpointError(f"{str(there)!r} gives out none of {names}; name the file, or the index of several")
