"""Zip archives: those of `numpy.savez` and of `torch.save`, which their members tell apart."""

from __future__ import annotations

from tensornp.models.files.byte_range import ByteRange
from tensornp.models.files.source_file import ListedFile
from tensornp.models.files.zip_directory import records_of
from tensornp.models.formats.contents import Contents


def read_zipped(file: ListedFile) -> Contents:
    """Return what a zip holds; CheckpointError if it is not sound."""
    with file.opened() as there:
        members = records_of(ByteRange(there, 0, file.nbytes, repr(file.path)))
    from tensornp.models.formats.npz import has_arrays, read_npz

    if has_arrays(members):
        return read_npz(file, members)
    from tensornp.models.formats.torch_save import read_zip

    return read_zip(file, members)
