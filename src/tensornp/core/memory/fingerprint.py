"""Fingerprint the bits of a tensor or an array, block by block: equal bits have equal fingerprints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.memory.digest import number_of
from tensornp.core.memory.footprint import check_parts, parts_under
from tensornp.core.tensor.block import blocks_of
from tensornp.core.tensor.form import BITS, over_storage, tensor_of

ALL_BLOCKS = "all blocks"
BLOCK_NBYTES = 2**20
"""Bytes of a block; each block has a fingerprint of its own."""
SAMPLE_NBYTES = 1024
NUM_SAMPLES = 64
"""Past the budget, so many pieces of so many bytes are read, evenly spread."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprints of the blocks of a tensor, in the order of indices, of 64 bits each.

    `one_in` is 1 if every byte was read; n if about one byte of n.
    """

    blocks: tuple[int, ...]
    one_in: int = 1

    @property
    def coverage(self) -> str:
        """The part that was read: "all blocks" or "sampled 1/64"."""
        return ALL_BLOCKS if self.one_in == 1 else f"sampled 1/{self.one_in:,}"


@outside_modes
def fingerprint(tensor: torch.Tensor, max_nbytes: int) -> Fingerprint | None:
    """Return the fingerprint of the values of `tensor`; None if its bits cannot be read.

    Reads every byte up to `max_nbytes`, else a sample of at most 64 KiB. Blocks are copied with torch, so nothing is
    locked; blocks on another device come to the host. An expanded element is read once.
    """
    try:
        check_parts(tensor)
        found = [_of_bits(bits, max_nbytes) for part in parts_under(tensor) for bits in _bits_of(plain(part))]
    except Exception:
        # A display never fails: a class or a device that cannot be read has no fingerprint.
        return None
    return (
        Fingerprint(tuple([digest for blocks, _ in found for digest in blocks]), max([n for _, n in found]))
        if found
        else None
    )


def fingerprint_of_array(array: np.ndarray[Any, Any], max_nbytes: int) -> Fingerprint | None:
    """Return the fingerprint of an array; None for an empty one and one of objects."""
    if not array.nbytes or array.dtype.hasobject:
        return None
    once = array[(*[slice(1) if step == 0 else slice(None) for step in array.strides], ...)]
    bits = once.view(np.dtype(f"V{array.itemsize}"))
    places = _sampled(bits.size, bits.itemsize, max_nbytes)
    if places is not None:
        sample = bits[np.unravel_index(places, bits.shape)]
        return Fingerprint(tuple(map(_digest, sample)), round(bits.size / places.size))
    size = max(BLOCK_NBYTES // bits.itemsize, 1)
    blocks: Any = np.nditer(bits, flags=["external_loop", "buffered"], order="C", buffersize=size)
    return Fingerprint(tuple(map(_digest, blocks)))


def _bits_of(raw: torch.Tensor) -> list[torch.Tensor]:
    """Return the bits of a strided tensor as integers, and its lazy bits if it has any."""
    for dim, step in enumerate(raw.stride()):
        raw = raw.narrow(dim, 0, 1) if step == 0 and raw.shape[dim] else raw
    if not raw.numel():
        return []
    if raw.dtype in (torch.quint4x2, torch.quint2x4):
        return [tensor_of(raw.untyped_storage())]
    bits = over_storage(raw, BITS[raw.element_size()])
    lazy = [torch.tensor([raw.is_conj(), raw.is_neg()], dtype=torch.uint8, device="cpu")]
    return [bits.view(-1) if bits.is_contiguous() else bits, *(lazy if raw.is_conj() or raw.is_neg() else [])]


def _of_bits(bits: torch.Tensor, max_nbytes: int) -> tuple[list[int], int]:
    """Return the digests of all blocks or of a sample, and what share of the bits was read: one in so many."""
    places = _sampled(bits.numel(), bits.element_size(), max_nbytes)
    if places is not None:
        sample = np.asarray(bits[torch.unravel_index(torch.from_numpy(places), bits.shape)].cpu())
        return [*map(_digest, sample)], round(bits.numel() / places.size)
    size, digests = BLOCK_NBYTES // bits.element_size(), []
    buffer = torch.empty(min(size, bits.numel()), dtype=bits.dtype, device="cpu")
    for block in blocks_of(tuple(bits.shape), size):
        part = bits[block.key] if block.shape != bits.shape else bits
        own = buffer[: part.numel()]
        quietly(own.view(part.shape).copy_, part)
        digests.append(_digest(np.asarray(own)))
    return digests, 1


def _sampled(numel: int, itemsize: int, max_nbytes: int) -> np.ndarray[Any, Any] | None:
    """Return the numbers of the sampled elements, a row for each piece; None if all are read."""
    num = max(SAMPLE_NBYTES // itemsize, 1)
    if numel * itemsize <= max(max_nbytes, NUM_SAMPLES * SAMPLE_NBYTES) or numel <= NUM_SAMPLES * num:
        return None
    starts = np.arange(NUM_SAMPLES) * (numel - num) // (NUM_SAMPLES - 1)
    return starts[:, None] + np.arange(num)


def _digest(block: Any) -> int:
    return number_of(np.ascontiguousarray(block).view(np.uint8).data)
