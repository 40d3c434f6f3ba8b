"""`listed`: the file at a path or an address, wherever it lies."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tensornp.models.files.address import Address, Place
from tensornp.models.files.source_file import ListedFile, SourceFile

_HEAD_NBYTES = 2**16
"""Bytes at the beginning of a file elsewhere that are asked for first."""


def listed(path: Place, nbytes: int = _HEAD_NBYTES) -> AbstractContextManager[ListedFile]:
    """Return the file at a path or an address, for a block in which it is listed: so much of it is then asked for."""
    if not isinstance(path, Address):
        return nullcontext(SourceFile.at(path))
    from tensornp.models.files.remote_file import RemoteFile

    return RemoteFile.listed(path, nbytes)
