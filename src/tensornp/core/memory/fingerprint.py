"""A fingerprint of the bits of a tensor, block by block: equal bits have equal ones, in bounded time, on its device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import raw_memory
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.blocks import Block
from tensornp.core.memory.digest import number_of
from tensornp.core.memory.extents import dense_span
from tensornp.core.memory.footprint import extent_of, parts_under
from tensornp.core.memory.strided import Strided, bits_of, each_once, strided_of_array, strided_of_tensor
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.errors import NotReadError

ALL_BLOCKS = "all blocks"
BLOCK_NBYTES = 2**20
"""Bytes of a block, of which each has a fingerprint of its own."""
SAMPLE_NBYTES = 1024
NUM_SAMPLES = 64
"""Past the budget: so many pieces, of so many bytes each, evenly spread."""
_PARALLEL_NBYTES = 2**25
_NUM_THREADS = 2


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprints of the blocks of a tensor, in order.

    Attributes
    ----------
    blocks : tuple of int
        64 bits each.
    one_in : int
        1 if every byte was read; n if about one byte of n.
    way : str
        How they were computed; only those of one way can be compared.
    """

    blocks: tuple[int, ...]
    one_in: int = 1
    way: str = "xxh3"

    @property
    def coverage(self) -> str:
        """What was read, in words: "all blocks" or "sampled 1/64"."""
        return ALL_BLOCKS if self.one_in == 1 else f"sampled 1/{self.one_in:,}"


def fingerprint(
    tensor: torch.Tensor, max_nbytes: int, info: TensorInfo | None = None, *, by_index: bool = False
) -> Fingerprint | None:
    """Return the fingerprint of the values of `tensor`, or None where its bits cannot be read.

    Reads every byte if there are no more than `max_nbytes`, else a sample of at most 64 KiB. Runs at the speed of
    memory on the CPU (xxh3, two threads where that helps); elsewhere on the device, from which only the result comes.
    Bytes between the elements of a strided view are not read. Nothing is changed, and nothing of the size of the tensor
    is allocated. `info` is the metadata of `tensor`, where that was read already.

    `by_index`, the elements are read in the order of their indices, not of the memory: equal tensors of other strides
    have equal ones; what is expanded is read as often as it is meant, and what is lazily conjugated or negated in a
    copy.
    """
    return fingerprint_or_why(tensor, max_nbytes, info, by_index=by_index)[0]


def fingerprint_or_why(
    tensor: torch.Tensor, max_nbytes: int, info: TensorInfo | None = None, *, by_index: bool = False
) -> tuple[Fingerprint | None, str]:
    """Return the same, and why its memory cannot be read, if that is known and will stay so."""
    try:
        return _read_apart(tensor, max_nbytes, info or inspect(tensor), by_index), ""
    except NotReadError as error:
        return None, why_for_good(error)
    except Exception:
        # Looking never fails: a class or a device that cannot do this has no fingerprint.
        return None, ""


def why_for_good(error: NotReadError) -> str:
    """Return why memory was not read; nothing where it only moved meanwhile, and can be read the next time."""
    return "" if str(error) == raw_memory.GIVEN_BACK else str(error)


@outside_modes
def _read_apart(tensor: torch.Tensor, max_nbytes: int, info: TensorInfo, by_index: bool) -> Fingerprint | None:
    if info.data_state != "available":
        return None
    parts = [plain(part) for part in ([tensor] if info.kind is STRIDED else parts_under(tensor))]
    return _joined([_of_part(part, max_nbytes, by_index) for part in parts if part.numel()])


def _joined(found: list[Fingerprint | None]) -> Fingerprint | None:
    known = [part for part in found if part is not None]
    if not known or len(known) < len(found):
        return None
    return Fingerprint(tuple(d for part in known for d in part.blocks), max(p.one_in for p in known), known[0].way)


def _of_part(part: torch.Tensor, max_nbytes: int, by_index: bool) -> Fingerprint | None:
    """Return the fingerprint of an alias that nobody else has; of codes with gaps between them there is none."""
    if part.device.type != "cpu" or not raw_memory.is_on():
        return None if part.is_quantized else replace(_of_rows(part, max_nbytes, _sums_of, by_index), way="sums")
    if by_index and (part.is_conj() or part.is_neg()):
        part = quietly(quietly(part.resolve_conj).resolve_neg)
    if part.is_quantized:
        if by_index and not part.is_contiguous():
            return None
        span = dense_span(extent_of(inspect(part)))
        return fingerprint_of_bytes(raw_memory.memory_of(part), *span, max_nbytes) if span is not None else None
    # What is read is bytes, whatever lazy bits make of them.
    return _of_strided(strided_of_tensor(part, bits_of(part.element_size())), max_nbytes, by_index)


def _of_strided(strided: Strided, max_nbytes: int, by_index: bool) -> Fingerprint:
    # By index, the pieces depend on the shape alone: never on strides, by which others would be read.
    ordered = strided if by_index else strided.in_memory_order()[0]
    itemsize = ordered.dtype.itemsize
    nbytes = ordered.numel * itemsize
    if not by_index and len(ordered.shape) < 2 and ordered.strides in ((), (itemsize,)):
        return fingerprint_of_bytes(ordered.memory, ordered.address, nbytes, max_nbytes)
    if nbytes <= max(max_nbytes, NUM_SAMPLES * SAMPLE_NBYTES):
        return Fingerprint(_digests(ordered, list(ordered.blocks(BLOCK_NBYTES // itemsize))))
    pieces = list(_spread(ordered.shape, itemsize))
    read = sum(math.prod(piece.shape) for piece in pieces) * itemsize
    return Fingerprint(_digests(ordered, pieces), round(nbytes / read))


def fingerprint_of_bytes(memory: raw_memory.Memory, low: int, nbytes: int, max_nbytes: int) -> Fingerprint:
    """Return the fingerprint of bytes of `memory` without gaps: `nbytes` from the address `low`."""
    pieces, one_in = pieces_of(nbytes, max_nbytes)
    if one_in > 1:
        sample = raw_memory.read(memory, [low + first for first, _ in pieces], SAMPLE_NBYTES)
        return Fingerprint(tuple(map(number_of, sample)), one_in)
    every = Strided(memory, low, (nbytes,), (1,), bits_of(1))
    return Fingerprint(_digests(every, [Block((i,), (j - i,)) for i, j in pieces]), one_in)


def fingerprint_of_array(array: np.ndarray[Any, Any], max_nbytes: int, *, by_index: bool = False) -> Fingerprint | None:
    """Return the fingerprint of an array, as `fingerprint` does; None for an empty one."""
    strided = strided_of_array(array, bits_of(array.dtype.itemsize))
    return None if strided.extent.is_empty else _of_strided(strided, max_nbytes, by_index)


def pieces_of(nbytes: int, max_nbytes: int) -> tuple[list[tuple[int, int]], int]:
    """Return from where to where the bytes are read, a piece for each fingerprint, and of how many one is read."""
    if nbytes <= max(max_nbytes, NUM_SAMPLES * SAMPLE_NBYTES):
        return [(i, min(i + BLOCK_NBYTES, nbytes)) for i in range(0, nbytes, BLOCK_NBYTES)], 1
    starts = [(nbytes - SAMPLE_NBYTES) * i // (NUM_SAMPLES - 1) for i in range(NUM_SAMPLES)]
    return [(i, i + SAMPLE_NBYTES) for i in starts], round(nbytes / (NUM_SAMPLES * SAMPLE_NBYTES))


def _digests(strided: Strided, blocks: list[Block]) -> tuple[int, ...]:
    def digest(block: np.ndarray[Any, Any], _: Block) -> int:
        return number_of(block.data)

    in_place = strided.can_be_read_in_place()
    nbytes = sum(math.prod(block.shape) for block in blocks) * strided.dtype.itemsize
    if nbytes < _PARALLEL_NBYTES:
        return tuple(strided.use_each(blocks, digest, in_place=in_place))
    # Both xxhash and the system's copy let go of the interpreter's lock while they read.
    share = -(-len(blocks) // _NUM_THREADS)
    shares = [blocks[i : i + share] for i in range(0, len(blocks), share)]
    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        parts = pool.map(lambda some: strided.use_each(some, digest, in_place=in_place), shares)
        return tuple(item for part in parts for item in part)


def _of_rows(
    values: torch.Tensor, max_nbytes: int, sums_of: Callable[[torch.Tensor], tuple[int, ...]], by_index: bool = False
) -> Fingerprint:
    """Return the fingerprint of a view that torch reads: its elements are put together some rows at a time."""
    rows = each_once(values) if not by_index else values if values.dim() else values.reshape(1)
    nbytes = rows.numel() * rows.element_size()
    if nbytes > max(max_nbytes, NUM_SAMPLES * SAMPLE_NBYTES):
        pieces = _spread(tuple(rows.shape), rows.element_size())
        sample = torch.stack([_narrowed(rows, piece).reshape(-1) for piece in pieces])
        return Fingerprint(sums_of(sample), round(nbytes / max(sample.numel() * sample.element_size(), 1)))
    return Fingerprint(tuple(digest for block in _blocks(rows) for digest in sums_of(block)))


def _blocks(rows: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield views of no more than a block each, which cover all of `rows` in order."""
    row_nbytes = rows.numel() // len(rows) * rows.element_size()
    if row_nbytes > BLOCK_NBYTES and rows.dim() > 1:
        for row in rows.unbind():
            yield from _blocks(row)
        return
    step = max(BLOCK_NBYTES // row_nbytes, 1)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _spread(shape: tuple[int, ...], itemsize: int) -> Iterator[Block]:
    """Yield evenly spread pieces, each of as many of the last dimensions as make a sample."""
    num = max(SAMPLE_NBYTES // itemsize, 1)
    dim, inner = len(shape) - 1, 1
    while dim and inner * shape[dim] <= num:
        inner *= shape[dim]
        dim -= 1
    lead, width, rest = shape[:dim], shape[dim], shape[dim + 1 :]
    length = min(max(num // inner, 1), width)
    for i in range(NUM_SAMPLES):
        at, index = math.prod(lead) * i // NUM_SAMPLES, []
        for size in reversed(lead):
            at, position = divmod(at, size)
            index.append(position)
        start = (width - length) * i // (NUM_SAMPLES - 1)
        yield Block((*reversed(index), start, *(0 for _ in rest)), (1,) * len(lead) + (length,) + rest)


def _narrowed(rows: torch.Tensor, block: Block) -> torch.Tensor:
    return rows[tuple(slice(i, i + n) for i, n in zip(*block, strict=True))]


_STEP = 0x9E3779B97F4A7C15 - 2**64
_ROUNDS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))
"""The step, and the shifts and factors of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Generators)."""


def _sums_of(values: torch.Tensor) -> tuple[int, ...]:
    """Return a sum of all 64-bit lanes, each mixed with its place by SplitMix64, computed on the device."""
    packed = quietly(quietly(quietly(values.resolve_conj).resolve_neg).contiguous)
    if packed.storage_offset() * packed.element_size() % 8:
        packed = quietly(packed.clone)
    # Not `view(-1)`, which keeps the odd stride of a single element.
    data = packed.as_strided((packed.numel(),), (1,)).view(torch.uint8)
    whole = data.numel() // 8 * 8
    lanes = [data[:whole].view(torch.int64), data[whole:].to(torch.int64)]
    digest: Any = 0
    for lane in lanes:
        if lane.numel():
            mixed = torch.arange(1, lane.numel() + 1, device=lane.device) * _STEP + lane
            # Fewer rounds would leave a change of the high bits of a lane in few bits of the sum.
            for shift, factor in _ROUNDS:
                # The mask, because the shift of a signed number repeats its sign.
                mixed = (mixed ^ (mixed >> shift & (1 << (64 - shift)) - 1)) * factor
            digest = digest * 31 + mixed.sum()
    return (int(digest),)
