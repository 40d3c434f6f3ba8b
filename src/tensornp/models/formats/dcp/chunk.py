"""A chunk of a tensor in a file: plain elements, or an item of `torch.save`.

Where in an item the elements lie is known only when it is looked into, which is done when values are asked for.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.core.tensor.strides import contiguous, is_in_order
from tensornp.errors import CheckpointError
from tensornp.models.files.byte_range import ByteRange, ByteSource
from tensornp.models.files.source_file import Extent, ListedFile, Reader
from tensornp.models.files.zstd import Unpacked
from tensornp.models.formats.dcp.names import writer_of
from tensornp.models.formats.torch_save import read_torch_zip, why_unread
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.torch_pickle import PickledTensor
from tensornp.models.reading.lazy_signs import AS_STORED, LazyBits, applied
from tensornp.models.reading.take import Array, Ranges, Reads, Shape

Form = Literal["plain", "torch.save", "zstd", "lost"]
MAX_BESIDES_NBYTES = 2**20
"""What the directory and the pickle of an item may have each: there is one tensor in it."""


@dataclass(frozen=True, slots=True)
class LostFile:
    """A missing file; only reading its bytes raises an error."""

    path: str
    why: str

    def opened(self, *, is_whole: bool = False) -> AbstractContextManager[Reader]:
        """Raise CheckpointError, which names it."""
        raise CheckpointError(self.why)

    def scanned(self) -> AbstractContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    @property
    def is_stream(self) -> bool:
        """Return False: no byte of it is read."""
        return False

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return where so many bytes would lie."""
        return Extent(self.path, offset, nbytes)


class Place(NamedTuple):
    """The elements of a chunk in its item: byte offset, strides and signs."""

    offset: int
    strides: Shape | None
    dtype: str = ""
    lazy: LazyBits = AS_STORED

    def reads(self, ranges: Ranges, sizes: Shape, itemsize: int) -> Reads:
        """Return the reads of some elements of a chunk."""
        steps = self.strides if self.strides is not None else contiguous(sizes)
        return Reads(ranges, tuple(step * itemsize for step in steps), itemsize)

    def read(self, source: ByteSource, ranges: Ranges, sizes: Shape, dtype: np.dtype[Any]) -> Array:
        """Return some elements of a chunk, with their signs."""
        reads = self.reads(ranges, sizes, dtype.itemsize)
        bits = reads.bring(lambda target, first: source.read_into(target, self.offset + first), dtype)
        return bits if self.lazy == AS_STORED else applied(bits, self.dtype, self.lazy)


class StoredChunk(NamedTuple):
    """A box of a tensor, and the bytes of a file that hold it."""

    offsets: Shape
    sizes: Shape
    file: ListedFile | LostFile
    offset: int
    nbytes: int
    form: Form

    @property
    def rank(self) -> int | None:
        """Which rank has written it; None where the name of its file does not tell."""
        return writer_of(PurePath(self.file.path).name)

    def source(self, there: Reader, limit: int) -> ByteSource:
        """Return the bytes of its item, unpacked; more than `limit` of those are not."""
        said = f"{self.file.path!r}, from byte {self.offset:,} on,"
        stored = ByteRange(there, self.offset, self.nbytes, said)
        return Unpacked(stored, limit) if self.form == "zstd" else stored

    def place(self, source: ByteSource, dtype: str) -> Place:
        """Return its elements; CheckpointError if the item does not fit its shape."""
        if self.form == "plain":
            return Place(0, None)
        found, storages, is_swapped, _ = read_torch_zip(source, MAX_BESIDES_NBYTES)
        tensor = found.root
        if type(tensor) is not PickledTensor or tensor.storage is None:
            raise CheckpointError(f"{source.said} is not a tensor of torch.save")
        record = storages.get(tensor.storage.key)
        problem = why_unread(tensor, record)
        if tensor.quantizer is not None:
            problem = problem or "it is quantized, which no chunk is"
        if is_swapped:
            problem = problem or "its storage has its bytes in big-endian order"
        if problem or record is None:
            raise CheckpointError(f"{source.said} has no values to read: {problem}")
        if (tensor.dtype, tensor.shape) != (dtype, self.sizes):
            has = f"{shown_name(tensor.dtype)} of shape {tensor.shape}"
            raise CheckpointError(f"{source.said} holds {has}, where {dtype} of shape {self.sizes} should be")
        strides = None if is_in_order(self.sizes, tensor.strides) else tensor.strides
        return Place(record.offset + tensor.offset * stored_dtype(dtype).itemsize, strides, dtype, tensor.lazy)
