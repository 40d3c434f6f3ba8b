"""Read items of a checkpoint: a pickle or a tensor of `torch.save`, perhaps packed by Zstandard."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.core.tensor.strides import unless_in_order
from tensornp.errors import CheckpointError, MissingLibraryError
from tensornp.models.entries.in_file import FileSource
from tensornp.models.files.byte_range import ByteRange, ByteSource, check_inside
from tensornp.models.files.source_file import Array, Extent, ListedFile, Reader
from tensornp.models.formats.torch_save import read_torch_zip, why_unread
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.torch_pickle import PickledTensor
from tensornp.models.reading.codec import AS_STORED, LazySigns
from tensornp.models.reading.take import Shape

MAX_BESIDES_NBYTES = 2**20
"""Bytes of the directory and the pickle of a tensor's item, each: there is one tensor in it."""
_LIBRARIES = ("zstandard", "compression.zstd")
"""Either of them unpacks; the second comes with Python 3.14."""


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


@dataclass(frozen=True, slots=True)
class PackedItem(ListedFile):
    """An item that is packed by Zstandard, as a file of its unpacked bytes, which are `limit` at most."""

    path: str
    file: ListedFile
    offset: int
    packed_nbytes: int
    limit: int

    @property
    def nbytes(self) -> int:
        """Return the most bytes that it may have."""
        return self.limit

    @property
    def is_stream(self) -> bool:
        """Return True: it is unpacked as a whole."""
        return True

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return the packed bytes."""
        return Extent(self.path, self.offset, self.packed_nbytes)

    @contextmanager
    def opened(self, *, is_whole: bool = False) -> Iterator[Unpacked]:
        """Unpack it; the file is closed then."""
        said = f"{self.path!r}, from byte {self.offset:,} on,"
        with self.file.opened() as there:
            packed = there.read(self.offset, self.packed_nbytes).tobytes()
        yield Unpacked(_unpack(packed, said, self.limit), said)


class Unpacked(Reader):
    """Unpacked bytes in memory."""

    def __init__(self, data: bytes, said: str) -> None:
        self._data, self.said, self.nbytes = data, said, len(data)

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""
        check_inside(self, offset, target.nbytes)
        target[:] = np.frombuffer(self._data, np.uint8, target.nbytes, offset)


def zstd_library() -> str:
    """Return the name of an installed library for Zstandard, or ""."""
    for name in _LIBRARIES:
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ImportError:
            continue
    return ""


def _unpack(packed: bytes, said: str, limit: int) -> bytes:
    name = zstd_library()
    if not name:
        raise MissingLibraryError(f"{said} is packed by Zstandard; install zstandard to read it")
    unpacker = importlib.import_module(name).ZstdDecompressor()
    try:
        if name == "zstandard":
            data: bytes = unpacker.stream_reader(packed).read(limit + 1)
        else:
            data = unpacker.decompress(packed, limit + 1)
    except Exception:
        # Each library has its own errors.
        raise CheckpointError(f"{said} is not packed soundly by Zstandard") from None
    if len(data) > limit:
        raise CheckpointError(f"{said} unpacks to more than {limit:,} bytes")
    return data


@contextmanager
def opened_item(file: ListedFile, offset: int, nbytes: int) -> Iterator[ByteSource]:
    """Open the bytes of an item."""
    with file.scanned(), file.opened() as there:
        said = f"{file.path!r}, from byte {offset:,} on,"
        yield there if isinstance(there, Unpacked) else ByteRange(there, offset, nbytes, said)


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
        first = (0 if self.file.is_stream else self.offset) + record.offset
        return FileSource(
            self.sizes, dtype, self.file, first + tensor.offset * stored_dtype(dtype).itemsize,
            unless_in_order(self.sizes, tensor.strides),
            codecs=() if tensor.lazy == AS_STORED else (LazySigns(dtype, tensor.lazy),),
        )  # fmt: skip
