"""One safetensors file as entries."""

from __future__ import annotations

from collections.abc import Iterator

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.files.lookalikes import NUM_LOOKED_AT, what_it_seems
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.safetensors.header import Header, read_header
from tensornp.models.formats.safetensors.saved_offsets import saved_offsets


def read_safetensors(file: ListedFile) -> Contents:
    """Return what a safetensors file holds; CheckpointError, with what the file seems to be instead."""
    header = _header_of(file)
    return Contents(list(_entries_in(file, header)), header.metadata, [])


def _header_of(file: ListedFile) -> Header:
    try:
        return read_header(file)
    except CheckpointError:
        seems = what_it_seems(file.read(0, min(file.nbytes, NUM_LOOKED_AT)))
        if seems:
            raise CheckpointError(f"{file.path!r} seems to be {seems}") from None
        if file.path.endswith((".bin", ".pt", ".pth", ".ckpt")):
            raise CheckpointError(
                f"{file.path!r} is neither a file of torch.save nor a sound one of safetensors"
            ) from None
        raise


def _entries_in(file: ListedFile, header: Header) -> Iterator[WeightEntry]:
    """Yield the weights of a file."""
    begins = saved_offsets(header.metadata)
    opened = f"safetensors.safe_open({file.path!r}, 'pt')"
    for name, dtype, shape, offset, nbytes, problem in header.tensors:
        code = f"{opened}.get_tensor({name!r})"
        note = f"a chunk of a tensor, from {begins[name]} on" if begins and any(begins.get(name, ())) else ""
        source = FileSource(shape, dtype, file, offset)
        yield weight_in(source, name, code, nbytes=nbytes, note=note, problem=problem)
