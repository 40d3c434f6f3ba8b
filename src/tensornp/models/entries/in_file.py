"""Values that lie in a file in one piece, as they are meant or as what a chain of codecs makes of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensornp.core.memory.extents import Extent as Laid
from tensornp.core.tensor.dtypes import KNOWN, SINCE, stored_dtype
from tensornp.core.tensor.strides import MAX_NDIM, contiguous, merged, num_reached, num_stored, order_of
from tensornp.errors import ChangedFileError, NoDataError, TooLargeError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import Called
from tensornp.models.entries.stored import ReadPlan, StoredSource, native
from tensornp.models.files.source_file import Bytes, Extent, Reader, SourceFile
from tensornp.models.reading.codec import Codec, Route
from tensornp.models.reading.selection import Array, Range, Ranges, Shape, taken_by

if TYPE_CHECKING:
    from tensornp.core.values.sources import Source as Values
    from tensornp.core.values.stats.record import TensorStats
    from tensornp.models.reading.reads import Reads

MIN_GIVEN_BACK = 2**30
"""Bytes of a file from which on a scan leaves nothing of it in the cache; a smaller one may soon be loaded."""
_PIECE_NUMEL = 2**20
"""Elements of a file elsewhere that are fetched at once where all are read; a part of each task."""
_MAX_WHOLE_NBYTES = 2**22
"""Bytes of what is compressed that are inflated at once."""


class _Opened(NamedTuple):
    """A file that is read, for whom, and the numbers beside that are kept while all values are."""

    file: Bytes
    there: Reader
    called: Called
    kept: dict[int, Array] | None


@dataclass(frozen=True, slots=True)
class FileSource(StoredSource):
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices.

    Attributes
    ----------
    shape : tuple of int
        Of what is meant, as of what is stored, unless a codec says otherwise.
    dtype : str
        Of the elements as they are stored.
    file : Bytes
        What is opened.
    offset : int
        In bytes.
    strides : tuple of int or None
        In elements; None where they lie in order without gaps.
    is_swapped : bool
        Whether the bytes of each are in the order that this machine does not have.
    codecs : tuple of Codec
        What makes of the stored elements what is meant, one after the other.
    """

    shape: Shape
    dtype: str
    file: Bytes
    offset: int
    strides: Shape | None = None
    is_swapped: bool = False
    codecs: tuple[Codec, ...] = ()

    @property
    def location(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def dtype_of_values(self) -> str:
        """What the last codec makes."""
        return self.codecs[-1].dtype if self.codecs else self.dtype

    @property
    def files(self) -> frozenset[Bytes]:
        """The file, and those of what codecs take besides."""
        others = (one.files for codec in self.codecs for one in codec.sources)
        return frozenset((self.file,)).union(*others)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where the bytes lie; with gaps, from the first to the last."""
        return (self.file.extent(self.offset, self._nbytes),)

    @property
    def fills_extents(self) -> bool:
        """Whether nothing is compressed."""
        return not self.file.is_stream

    @property
    def lies(self) -> Laid | None:
        """Where the elements lie; None of what is compressed, or in blocks of codes."""
        size = self.itemsize
        if not size:
            return None
        # No address is 0, and an offset may be.
        at = self.offset + 1
        steps = self.strides if self.strides is not None else contiguous(self.shape)
        strides = tuple(step * size for step in steps)
        return Laid(self.file.path, at, self.shape, strides, size, f"{self.dtype} {hash(self.codecs)}")

    @property
    def itemsize(self) -> int:
        """Bytes of an element; 0 of what is compressed, or in blocks of codes."""
        return 0 if self.file.is_stream or self.dtype not in KNOWN else stored_dtype(self.dtype).itemsize

    @property
    def identity(self) -> object:
        """The elements, which several names may have."""
        if not self.itemsize or 0 in self.shape:
            return id(self)
        # Not the source: to compare files takes long, and of one path there is one.
        return self.file.path, self.offset, self.shape, self.strides, self.dtype, self.codecs

    @property
    def codes(self) -> FileSource | None:
        """The codes as they are stored."""
        return replace(self, codecs=()) if self.codecs and self.dtype in KNOWN and self._has_meaning else None

    @property
    def _has_meaning(self) -> bool:
        """Whether codecs make another dtype of the codes."""
        return self.dtype_of_values != self.dtype

    @property
    def item(self) -> np.dtype[Any]:
        """The NumPy dtype by which elements are read."""
        laid = self.codecs[0].stored(self.shape) if self.codecs else None
        item = laid[1] if laid is not None else stored_dtype(self.dtype)
        return item.newbyteorder("S") if self.is_swapped else item

    @property
    def _stored_shape(self) -> Shape:
        laid = self.codecs[0].stored(self.shape) if self.codecs else None
        return laid[0] if laid is not None else self.shape

    @property
    def _nbytes(self) -> int:
        """The bytes from the first element to the last."""
        shape = self._stored_shape
        numel = math.prod(shape) if self.strides is None else num_reached(shape, self.strides)
        return numel * self.item.itemsize

    @property
    def is_shared_out(self) -> bool:
        """Whether the elements lie without gaps; what is compressed begins at its beginning for each task."""
        return self._is_dense and not self.file.is_stream

    @property
    def order(self) -> tuple[int, ...] | None:
        """The dimensions from the widest stride to the narrowest."""
        return tuple(range(len(self.shape))) if self.strides is None else order_of(self.shape, self.strides)

    @property
    def _is_dense(self) -> bool:
        """Whether each byte from the first to the last belongs to one element, in whatever order they lie."""
        return self.strides is None or order_of(self.shape, self.strides) is not None

    @property
    def _is_elementwise(self) -> bool:
        return all(codec.is_elementwise for codec in self.codecs)

    def plan(self, called: Called, index: Any) -> ReadPlan:
        """Return what `to_numpy` would read, of codes and of what codecs take besides; of a stream, at most."""
        taken = taken_by(index, self.shape)
        if self.file.is_stream:
            return ReadPlan(self.extents[0].nbytes, 1, taken.shape)
        route = Route.of(taken.ranges, self.codecs)
        own = self._reads(route, self.strides)
        others = [source.plan(called, at) for source, at in route.beside(self.codecs)]
        nbytes = own.nbytes + sum(one.nbytes_read for one in others)
        return ReadPlan(nbytes, own.num + sum(one.num_reads for one in others), taken.shape)

    def values(self, called: Called) -> Any:
        """Return what reads the values some at a time; of what is compressed and small, a tensor of all.

        What is larger and compressed is inflated from its start for each read.
        """
        from tensornp.models.files.deflate import Inflated

        if isinstance(self.file, Inflated) and self._nbytes <= _MAX_WHOLE_NBYTES:
            from tensornp.models.entries.made_of_bits import tensor_of

            return tensor_of(native(self.read(called, ...)), self.dtype_of_values)
        found = StoredSource.values(self, called)
        quantized = self.codecs[-1].quantized if self.codecs else ""
        stored = num_stored(self.shape, self.strides) if self.strides is not None else None
        return replace(
            found, quantized=quantized, codes=self.codes.values(called) if self.codes is not None else None,
            scheme=self.codecs,
            is_sequential=self.file.is_stream, max_stored=stored,
        )  # fmt: skip

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of all values, read block by block; what several indices show is read once.

        TooLargeError if the same elements would be read over and over, for hours.
        """
        if not self._is_dense:
            self._check_endless(called)
        return StoredSource.stats(self, called)

    def give_back(self) -> None:
        """Let the system drop what was read of it from its cache, if the file is so large that it crowds others out."""
        file = self.file
        if isinstance(file, SourceFile) and file.nbytes >= MIN_GIVEN_BACK:
            with suppress(ChangedFileError), file.opened() as there:
                there.give_back(self.offset, self._nbytes)

    @contextmanager
    def reading(self, called: Called, *, is_whole: bool = False) -> Iterator[_Opened]:
        """Open the file for some reads; for all values, what codecs take besides is read once."""
        with self.file.opened(is_whole=is_whole) as there:
            yield _Opened(self.file, there, called, {} if is_whole else None)

    def elements(self, opened: _Opened, ranges: Ranges) -> Array:
        """Return the elements in some ranges as they are meant."""
        return self._read(opened, ranges, self.strides)

    def row(self, opened: _Opened, first: int, count: int) -> Array:
        """Return so many elements from one on, as they lie in the file."""
        if self._is_elementwise:
            made = np.empty(count, self.item)
            target, at = made.view(np.uint8), self.offset + first * made.itemsize
            opened.there.read_into(target, at)
            return self._decoded(opened, made, Route.of((), self.codecs))
        from tensornp.models.reading.boxes import boxes_of_row

        order = self.order or tuple(range(len(self.shape)))
        parts = []
        for box in boxes_of_row(first, count, tuple(self.shape[axis] for axis in order)):
            ranges = [Range(0, 0, 1)] * len(order)
            for axis, offset, size in zip(order, *box, strict=True):
                ranges[axis] = Range(offset, size, 1)
            parts.append(self.elements(opened, tuple(ranges)).transpose(order).reshape(-1))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def numbers(self, opened: _Opened, index: Any) -> Array:
        """Return the values at `index` as numbers, for another source over `opened`, perhaps of the same file."""
        taken = taken_by(index, self.shape)
        if opened.file == self.file:
            bits = self.elements(opened, taken.ranges)
        else:
            with self.reading(opened.called) as own:
                bits = self.elements(own, taken.ranges)
        from tensornp.core.values.blocks import numbers_of

        return numbers_of(native(bits), self.dtype_of_values)

    def numbers_read(self, opened: Any) -> Values:
        """Return the source of statistics: with gaps, each stored element once."""
        if self._is_dense:
            return StoredSource.numbers_read(self, opened)
        from tensornp.core.values.blocks import part_of_reader
        from tensornp.core.values.sources import Source as Values
        from tensornp.core.values.stored import flat_from_boxes

        shape, strides, times = self._laid_once()

        def read(box: tuple[slice, ...]) -> Array:
            return self._read(opened, taken_by(box, shape).ranges, strides)

        name = self.dtype_of_values
        part = part_of_reader(flat_from_boxes(shape, read), shape, name, times=times)
        return Values((part,), name, self.shape)

    def reader_in_order(self, called: Called) -> Callable[[int, int], Array]:
        """Return what brings so many elements from one on, in the order of their indices."""
        if self.strides is None:
            return StoredSource.reader_in_order(self, called)
        from tensornp.core.values.stored import flat_from_boxes

        return flat_from_boxes(self.shape, lambda box: native(self.read(called, box)))

    def _reads(self, route: Route, strides: Shape | None) -> Reads:
        """Return what brings the stored elements, of which neighbours lie so far apart; None: in their order."""
        from tensornp.models.reading.reads import Reads

        size = self.item.itemsize
        steps = strides if strides is not None else contiguous(self._stored_shape)
        return Reads.of(route.stored, tuple(step * size for step in steps), size)

    def _read(self, opened: _Opened, ranges: Ranges, strides: Shape | None) -> Array:
        route = Route.of(ranges, self.codecs)
        reads = self._reads(route, strides)
        bits = reads.bring(lambda target, first: opened.there.read_into(target, self.offset + first), self.item)
        return self._decoded(opened, bits, route)

    def _decoded(self, opened: _Opened, bits: Array, route: Route) -> Array:
        """Return what the codecs make of stored elements; any byte but 0 is True."""
        made = np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits
        try:
            return route.decoded(made, self.codecs, lambda source, index: self._beside(opened, source, index))
        except NoDataError as error:
            raise opened.called.without_values(str(error)) from None

    @staticmethod
    def _beside(opened: _Opened, source: FileSource, index: Any) -> Array:
        """Return the numbers that a codec takes of a source, of which all are read once where all values are."""
        if opened.kept is None:
            return source.numbers(opened, index)
        if id(source) not in opened.kept:
            opened.kept[id(source)] = source.numbers(opened, ...)
        return np.asarray(opened.kept[id(source)][index])

    def _laid_once(self) -> tuple[Shape, Shape, int]:
        """Return by which shape and strides values are read where there are gaps, and how often each is meant."""
        assert self.strides is not None
        if not self._is_elementwise:
            # What several indices show may have another value for each.
            return self.shape, self.strides, 1
        every = list(zip(self.shape, self.strides, strict=True))
        # As tensors in memory are read (`Strided.in_memory_order`): the same blocks give the same bits.
        kept = sorted((pair for pair in every if pair[0] != 1 and pair[1]), key=lambda pair: (pair[1], pair[0]))
        pairs, _ = merged(kept[::-1])
        times = math.prod(n for n, step in every if not step)
        return tuple(n for n, _ in pairs), tuple(step for _, step in pairs), times

    def _check_endless(self, called: Called) -> None:
        from tensornp.core.values.sources import MAX_REPEATED

        shape, strides, _ = self._laid_once()
        numel, reach = math.prod(shape), num_reached(shape, strides)
        if numel > max(reach, MAX_REPEATED):
            raise TooLargeError(
                f"the statistics of {called.shown} would read {numel:,} elements of which {reach:,} are "
                "stored; take its values by an index",
                numel * self.item.itemsize,
            )


def weight_in(
    source: FileSource, name: str, code: str, *, kind: str = "tensor", nbytes: int | None = None, note: str = "",
    problem: str = "",
) -> WeightEntry:  # fmt: skip
    """Return a weight that lies in a file; `nbytes` as the file tells, or of each stored element once."""
    shape, dtype, strides = source.shape, source.dtype, source.strides
    if nbytes is None:
        sizes = shape if strides is None else (n if step else min(n, 1) for n, step in zip(shape, strides, strict=True))
        nbytes = math.prod(sizes) * stored_dtype(dtype).itemsize if dtype in KNOWN else 0
    problem = problem or why_no_array(shape, dtype)
    return WeightEntry(name, kind, shape, dtype, nbytes, source, code, note, problem)


def why_no_array(shape: tuple[int, ...], dtype: str) -> str:
    """Return why no array can have this shape and dtype: this NumPy or this torch lacks it; empty where both do not."""
    if len(shape) > MAX_NDIM:
        return f"it has {len(shape):,} dimensions, and NumPy has {MAX_NDIM} at most"
    return _why_unknown(dtype) if dtype in SINCE else ""


@cache
def _why_unknown(dtype: str) -> str:
    """Return that this torch has no such dtype; its version tells, for which it need not be imported."""
    from importlib.metadata import PackageNotFoundError, version

    torch = sys.modules.get("torch")
    try:
        told: str = version("torch") if torch is None else torch.__version__
    except PackageNotFoundError:
        return ""
    is_there = tuple(map(int, told.split(".")[:2])) >= SINCE[dtype] if torch is None else hasattr(torch, dtype)
    # A wheel and its package may name another build.
    return "" if is_there else f"torch {told.partition('+')[0]} has no {dtype}; install a newer one"
