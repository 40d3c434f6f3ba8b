"""Read items of a checkpoint: a pickle or a tensor of `torch.save`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.core.tensor.strides import unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.entries.in_file import FileSource
from tensornp.models.files.byte_range import ByteRange, ByteSource
from tensornp.models.files.source_file import ListedFile, Reader
from tensornp.models.formats.torch_save import read_torch_zip, why_unread
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.torch_pickle import PickledTensor
from tensornp.models.reading.codec import AS_STORED, LazySigns
from tensornp.models.reading.take import Shape

MAX_BESIDES_NBYTES = 2**20
"""Bytes of the directory and the pickle of a tensor's item, each: there is one tensor in it."""


@dataclass(frozen=True, slots=True)
class LostFile(ListedFile):
    """A missing file; only reading its bytes raises an error."""

    path: str
    why: str

    @property
    def nbytes(self) -> int:
        """Return 0."""
        return 0

    def opened(self, *, is_whole: bool = False) -> AbstractContextManager[Reader]:
        """Raise CheckpointError, which names it."""
        raise CheckpointError(self.why)


@contextmanager
def opened_item(file: ListedFile, offset: int, nbytes: int) -> Iterator[ByteSource]:
    """Open the bytes of an item."""
    with file.scanned(), file.opened() as there:
        said = f"{file.path!r}, from byte {offset:,} on,"
        yield ByteRange(there, offset, nbytes, said)


class StoredChunk(NamedTuple):
    """A box of a tensor, and the bytes that hold it: bare elements, or an item of `torch.save`."""

    offsets: Shape
    sizes: Shape
    file: ListedFile
    offset: int
    nbytes: int
    is_item: bool = True

    def source(self, dtype: str) -> FileSource:
        """Return its elements; CheckpointError if the item does not fit its shape."""
        if not self.is_item:
            return FileSource(self.sizes, dtype, self.file, self.offset)
        with opened_item(self.file, self.offset, self.nbytes) as item:
            found, storages, is_swapped, _ = read_torch_zip(item, MAX_BESIDES_NBYTES)
        tensor = found.root
        if type(tensor) is not PickledTensor or tensor.storage is None:
            raise CheckpointError(f"{item.said} is not a tensor of torch.save")
        record = storages.get(tensor.storage.key)
        problem = why_unread(tensor, record)
        if tensor.quantizer is not None:
            problem = problem or "it is quantized, which no chunk is"
        if is_swapped:
            problem = problem or "its storage has its bytes in big-endian order"
        if problem or record is None:
            raise CheckpointError(f"{item.said} has no values to read: {problem}")
        if (tensor.dtype, tensor.shape) != (dtype, self.sizes):
            has = f"{shown_name(tensor.dtype)} of shape {tensor.shape}"
            raise CheckpointError(f"{item.said} holds {has}, where {dtype} of shape {self.sizes} should be")
        first = self.offset + record.offset
        return FileSource(
            self.sizes, dtype, self.file, first + tensor.offset * stored_dtype(dtype).itemsize,
            unless_in_order(self.sizes, tensor.strides),
            codecs=() if tensor.lazy == AS_STORED else (LazySigns(dtype, tensor.lazy),),
        )  # fmt: skip
