"""Parts of a file by a protocol of fsspec: without its caches, and checked, since a server may give fewer bytes."""

from __future__ import annotations

import os
from typing import Any

from tensornp.errors import CheckpointError, MissingLibraryError, TensornpError
from tensornp.models.files.address import AbsentError, Address, Version
from tensornp.models.files.source_file import SourceFile

_TELLING = (
    "ETag", "etag", "LastModified", "last_modified", "last_commit", "mtime", "updated", "generation", "created",
    "blob_id", "md5Hash", "md5", "checksum",
)  # fmt: skip
"""What protocols call that by which a file is known again."""

_MAX_NBYTES = 2**26
"""Bytes that are asked for at once: they come in memory of their own first."""


def fill(address: Address, view: memoryview, offset: int) -> tuple[Version, int]:
    """Fill `view` with the bytes from `offset` on; returns what is told of the file, and how many came.

    Fewer come where the file ends, or where no more are given at once. CheckpointError, a sentence, for whatever else
    happens; MissingLibraryError where fsspec or the protocol is not installed.
    """
    said = repr(str(address))
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        cure = f"pip install fsspec, and what it needs for {address.scheme}://"
        raise MissingLibraryError(f"{said} is read by fsspec, which is not installed; {cure}") from None
    try:
        try:
            files, path = fsspec.core.url_to_fs(address.url)
        except ImportError as error:
            raise MissingLibraryError(f"{said} is read by a library that is not installed; {error}") from None
        except ValueError:
            raise CheckpointError(f"{said} has a scheme that fsspec does not know; check it") from None
        if getattr(files, "local_file", False) and os.path.exists(path):
            # A pipe would hang whoever opens it.
            SourceFile.at(path)
        with files.open(path, "rb", cache_type="none") as there:
            told: dict[str, Any] = getattr(there, "details", None) or files.info(path)
            there.seek(offset)
            # Not into the view: what says how many bytes it has filled may have filled fewer.
            data = memoryview(there.read(min(len(view), _MAX_NBYTES))).cast("B")
            size, telling = told.get("size"), [(key, told[key]) for key in _TELLING if told.get(key) is not None]
            if type(size) is not int or not 0 <= size < 2**63:
                raise CheckpointError(f"{said} is of a size that nothing tells; download it, and open its path")
            view[: len(data)] = data
            return Version(size, str(telling or "")), len(data)
        raise EOFError
    except TensornpError:
        raise
    except FileNotFoundError:
        raise AbsentError(f"{said} is not there; check the address") from None
    except PermissionError:
        raise AbsentError(f"{said}: access denied; log in first") from None
    except Exception as error:
        # Its words may tell the address.
        why = f"cannot be read: {type(error).__name__}"
        raise CheckpointError(f"{said} {why}; fsspec.open(...).open() tells more") from None
