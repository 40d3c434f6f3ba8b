"""A weight that torch has quantized: a file holds integer codes, and each has a scale and a zero point."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.memory.strided import BLOCK_NUMEL, blocks_of
from tensornp.core.values.reading.decode import decoder
from tensornp.core.values.reading.stored import StoredValues
from tensornp.errors import NoDataError
from tensornp.models.entries.entry import Array
from tensornp.models.entries.file import FileEntry
from tensornp.models.entries.stored import ReadPlan, native
from tensornp.models.files.source_file import Reader
from tensornp.models.names.quoted import shown_name
from tensornp.models.quantization.codec import VALUES
from tensornp.models.quantization.quantizer import MAX_VALUE, Affine, Laid, Numbers, Row, Rows, told_of
from tensornp.models.reading.selection import Range, Selection


class AffineEntry(FileEntry):
    """A weight of `codes`, whose values are float32; `affine` says which, and is None where that is not told.

    `quantizer` is what the pickle says of it, `laid` gives what a tensor in there shows of the file, and `rows` are
    lists of numbers that were met in it.
    """

    __slots__ = ("affine", "codes")

    def __init__(self, codes: FileEntry, quantizer: Any, laid: Laid, rows: Rows) -> None:
        self._begin_as(codes)
        self.codes, self.affine = codes, None
        told = told_of(quantizer, codes, laid, rows)
        if isinstance(told, Affine):
            self.affine = told
            self.note = ", ".join(filter(None, [told.note, codes.note]))
        else:
            self.problem = self.problem or told
        self.dtype = f"q{codes.dtype}"

    @property
    def dtype_of_values(self) -> str:
        """What the codes mean."""
        return VALUES

    def values(self) -> StoredValues:
        """Return what reads the values some at a time, of a tensor that torch quantizes in the same way."""
        found: StoredValues = super().values()
        return replace(found, quantized=self.dtype)

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the codes."""
        return self.codes.bits_dtype

    @property
    def meaning(self) -> Hashable:
        """What is equal where equal codes are equal values."""
        return self.dtype, self.affine.key if self.affine is not None else None

    @property
    def values_key(self) -> tuple[Any, ...]:
        """What is equal for the same values, the scales among it."""
        return *super().values_key, self.meaning

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read, of codes and of the scales and zero points that lie in the file."""
        self.check_readable()
        codes = self.codes.plan(index)
        assert self.affine is not None
        found = [codes]
        if self.affine.axis is not None and 0 not in codes.shape:
            along = _slice_of(self.select(index).ranges[self.affine.axis])
            beside = (self.affine.scales, self.affine.zeros)
            found += [one.plan(along) for one in beside if isinstance(one, FileEntry)]
        return ReadPlan(sum(one.nbytes_read for one in found), sum(one.num_reads for one in found), codes.shape)

    @ignoring_float_errors
    def _bits_at(self, opened: Reader, selection: Selection) -> Array:
        whole = replace(selection, final=(slice(None),) * len(selection.ranges))
        codes = super()._bits_at(opened, whole)
        made = np.empty(codes.shape, VALUES)
        if not made.size:
            return np.asarray(made[selection.final])
        assert self.affine is not None
        axis = self.affine.axis
        scales, zeros = self._numbers(opened, selection.ranges[axis] if axis is not None else None)
        for start, sizes in blocks_of(made.shape, BLOCK_NUMEL):
            at = tuple(slice(i, i + n) for i, n in zip(start, sizes, strict=True))
            ours = (scales, zeros)
            if axis is not None:
                lined = [n if d == axis else 1 for d, n in enumerate(sizes)]
                ours = scales[at[axis]].reshape(lined), zeros[at[axis]].reshape(lined)
            made[at] = self.affine.values(codes[at], *ours)
        return np.asarray(made[selection.final])

    @ignoring_float_errors
    def _flat(self, opened: Reader, first: int, count: int) -> Array:
        codes = super()._flat(opened, first, count)
        if not codes.size:
            return codes.astype(VALUES)
        assert self.affine is not None
        scales, zeros = self._numbers_in_row(opened, first, count)
        return self.affine.values(codes, scales, zeros)

    def _laid_once(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        assert self.shape is not None and self._strides is not None and self.affine is not None
        # What several indices show has another value for each channel.
        return super()._laid_once() if self.affine.axis is None else (self.shape, self._strides, 1)

    def _numbers_in_row(self, opened: Reader, first: int, count: int) -> tuple[Array, Array]:
        """Return the scales and zero points of elements that follow one another in the file."""
        assert self.affine is not None and self.shape is not None
        axis, order = self.affine.axis, self._order()
        if axis is None or order is None:
            return self._numbers(opened, None)
        size = self.shape[axis]
        inner = math.prod(self.shape[d] for d in order[order.index(axis) + 1 :])
        # Channels come again and again; each is told once, or as often as it is met.
        start, stop = first // inner, -(-(first + count) // inner)
        low, num = start % size, stop - start
        met = [Range(0, size, 1)]
        if num < size:
            met = [Range(low, min(num, size - low), 1), Range(0, max(low + num - size, 0), 1)]
        parts = [self._numbers(opened, one) for one in met if one.num]
        scales, zeros = (np.concatenate(some) for some in zip(*parts, strict=True))
        if num >= size:
            scales, zeros = (np.resize(np.roll(some, -low), num) for some in (scales, zeros))
        if inner == 1:
            return scales, zeros
        lengths = np.full(num, inner)
        lengths[0] -= first - start * inner
        lengths[-1] -= stop * inner - first - count
        return np.repeat(scales, lengths), np.repeat(zeros, lengths)

    def _numbers(self, opened: Reader, along: Range | None) -> tuple[Array, Array]:
        """Return the scales and zero points of some indices along the axis, or of all codes; NoDataError for NaN."""
        assert self.affine is not None
        has_floats, most = self.affine.has_float_zeros, np.iinfo(self.codes.dtype)
        scales, zeros = (_read(opened, one, along) for one in (self.affine.scales, self.affine.zeros))
        low, high = (-MAX_VALUE, MAX_VALUE) if has_floats else (most.min, most.max)
        self._check("scale", scales, np.abs(scales) <= MAX_VALUE, along)
        self._check("zero point", zeros, (zeros >= low) & (zeros <= high), along)
        if self.affine.axis is not None:
            zeros = zeros.astype(VALUES)
        return scales.astype(np.float32 if has_floats else np.float64), zeros

    def _check(self, what: str, some: Array, is_right: Array, along: Range | None) -> None:
        """Raise NoDataError unless all are such as torch takes."""
        if is_right.all() or along is None:
            return
        at = int(np.argmin(is_right))
        said = f"its {what} of index {along.first + at * along.step:,} is {some[at]}, and none of {self.dtype}"
        raise NoDataError(f"{shown_name(self.name)} has no values to read: {said}")


def _slice_of(along: Range) -> slice:
    return slice(along.first, along.first + (along.num - 1) * along.step + 1 if along.num else along.first, along.step)


def _read(opened: Reader, numbers: Numbers, along: Range | None) -> Array:
    """Return some of the scales or zero points; the only one, where there is one for all codes."""
    if isinstance(numbers, (int, float)) or along is None:
        return np.array(numbers)
    part = _slice_of(along)
    if isinstance(numbers, Row):
        return np.asarray(numbers.values[part])
    bits = numbers._meant(numbers._bits_at(opened, numbers.select(part)))
    return np.asarray(decoder(numbers.dtype)(native(bits)))
