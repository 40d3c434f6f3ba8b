"""Which format a file is of, by how it begins, and what it holds."""

from __future__ import annotations

from pathlib import Path

from tensornp.errors import CheckpointError
from tensornp.models.files.byte_range import ByteRange
from tensornp.models.files.lookalikes import what_zip_it_seems
from tensornp.models.files.source_file import SourceFile
from tensornp.models.files.zip_directory import EMPTY_ZIP_MAGIC, ZIP_MAGIC, records_of
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.gguf.file import read_gguf
from tensornp.models.formats.gguf.header import GGUF_MAGIC
from tensornp.models.formats.npy import NPY_MAGIC, read_npy
from tensornp.models.formats.npz import has_arrays, read_npz
from tensornp.models.formats.torch.file import is_legacy, read_legacy, read_zip

_NUM_READ = 64
_SUFFIXES = (".npy", ".npz", ".gguf")


def contents_of(file: SourceFile) -> Contents | None:
    """Return what a file holds; None of one that is to be of safetensors, which have no beginning of their own.

    Raises
    ------
    CheckpointError
        If it is not sound, or its name is that of another format.
    """
    if not file.nbytes:
        raise CheckpointError(f"{file.path!r} is empty")
    begins = file.read(0, min(file.nbytes, _NUM_READ))
    if begins.startswith((ZIP_MAGIC, EMPTY_ZIP_MAGIC)):
        with file.opened() as there:
            members = records_of(ByteRange(there, 0, file.nbytes, repr(file.path)))
        if seems := what_zip_it_seems(members):
            raise CheckpointError(f"{file.path!r} is {seems}")
        return read_npz(file, members) if has_arrays(members) else read_zip(file, members)
    if begins.startswith(NPY_MAGIC):
        return read_npy(file)
    if begins.startswith(GGUF_MAGIC):
        return read_gguf(file)
    if is_legacy(begins):
        return read_legacy(file)
    suffix = Path(file.path).suffix
    if suffix in _SUFFIXES:
        raise CheckpointError(f"{file.path!r} does not begin as a {suffix} file does")
    return None
