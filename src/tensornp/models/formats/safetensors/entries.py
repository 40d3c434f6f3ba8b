"""One safetensors file as entries."""

from __future__ import annotations

from collections.abc import Iterator

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.file import FileEntry
from tensornp.models.files.lookalikes import NUM_LOOKED_AT, what_it_seems
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.safetensors.header import Header, read_header
from tensornp.models.formats.safetensors.saved_offsets import saved_offsets
from tensornp.models.formats.suffixes import TORCH_SUFFIXES


def header_of(file: SourceFile) -> Header:
    """Return what the header of a safetensors file says; CheckpointError, with what the file seems to be instead."""
    try:
        return read_header(file)
    except CheckpointError:
        seems = what_it_seems(file.read(0, min(file.nbytes, NUM_LOOKED_AT)))
        if seems:
            raise CheckpointError(f"{file.path!r} seems to be {seems}") from None
        if file.path.endswith(TORCH_SUFFIXES):
            raise CheckpointError(
                f"{file.path!r} is neither a file of torch.save nor a sound one of safetensors"
            ) from None
        raise


def entries_in(file: SourceFile, header: Header) -> Iterator[WeightEntry]:
    """Yield the weights of a file."""
    begins = saved_offsets(header.metadata)
    for tensor in header.tensors:
        code = f"safetensors.safe_open({file.path!r}, 'pt').get_tensor({tensor.name!r})"
        entry = FileEntry(tensor.name, tensor.shape, tensor.dtype, code, file, tensor.offset)
        entry.nbytes = tensor.nbytes
        entry.problem = tensor.problem or entry.problem
        if any(begins.get(tensor.name, ())):
            entry.note = f"a chunk of a tensor, from {begins[tensor.name]} on"
        yield entry
