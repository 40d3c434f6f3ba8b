"""`listed`: the file at a path or an address."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tensornp.models.files.address import Address, Place
from tensornp.models.files.source_file import ListedFile, SourceFile


def listed(path: Place, nbytes: int = 2**16) -> AbstractContextManager[ListedFile]:
    """Return a context with the file at a path, or the first bytes at an address."""
    if not isinstance(path, Address):
        return nullcontext(SourceFile.at(path))
    from tensornp.models.files.remote_file import RemoteFile

    return RemoteFile.listed(path, nbytes)
