"""Record a tensor at one moment by a fingerprint of its bits, and describe later changes."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import xxhash

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import plain
from tensornp.core.lowlevel.torch_private import is_lazily_copied
from tensornp.core.memory.footprint import is_freed
from tensornp.core.memory.identity import TensorReference
from tensornp.core.memory.saved import next_operation
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import BITS, is_held, over_storage
from tensornp.core.tensor.kinds import parts_of

BLOCK_NBYTES = 2**20
"""Bytes of a block."""
SAMPLE_NBYTES = 1024
NUM_SAMPLES = 64
"""Past the budget, so many pieces of so many bytes are read, evenly spread."""


class Fingerprint(NamedTuple):
    """A digest of the bits of a tensor; about one byte in `one_in` was read."""

    digest: bytes
    one_in: int = 1

    @property
    def coverage(self) -> str:
        return f"sampled 1/{self.one_in:,}" if self.one_in > 1 else ""


@outside_modes
def fingerprint(tensor: torch.Tensor, max_nbytes: int) -> Fingerprint | None:
    """Return the fingerprint of a tensor; None if its bits cannot be read.

    Reads every byte up to `max_nbytes`, else a sample of at most 64 KiB. An expanded element is read once.
    """
    try:
        parts = [part for part, _ in parts_of(tensor, has_all=True)]
        if not all(map(is_held, parts)):
            return None
        each = [_of_bits(bits, max_nbytes) for part in parts for bits in _bits_of(plain(part))]
    except Exception:
        # A display never fails: a class or a device that cannot be read has no fingerprint.
        return None
    known = [one for one in each if one is not None]
    return Fingerprint(b"".join(one.digest for one in known), max(one.one_in for one in known)) if known else None


def fingerprint_of_array(array: np.ndarray[Any, Any], max_nbytes: int) -> Fingerprint | None:
    if not array.nbytes or array.dtype.hasobject:
        return None
    once = array[(*[slice(1) if step == 0 else slice(None) for step in array.strides], ...)]
    bits = once.view(np.dtype(f"V{array.itemsize}"))
    places = _sampled(bits.size, bits.itemsize, max_nbytes)
    if places is not None:
        sample = bits[np.unravel_index(places, bits.shape)]
        return Fingerprint(digest_of(_bytes_of(sample)), round(bits.size / places.size))
    size, seen = max(BLOCK_NBYTES // bits.itemsize, 1), xxhash.xxh3_128()
    blocks: Any = np.nditer(bits, flags=["external_loop", "buffered"], order="C", buffersize=size)
    for block in blocks:
        seen.update(_bytes_of(block))
    return Fingerprint(seen.digest())


def _bits_of(raw: torch.Tensor) -> list[torch.Tensor]:
    for dim, step in enumerate(raw.stride()):
        raw = raw.narrow(dim, 0, 1) if step == 0 and raw.shape[dim] else raw
    if not raw.numel():
        return []
    if raw.dtype in (torch.quint4x2, torch.quint2x4):
        return [torch.empty(0, dtype=torch.uint8, device=raw.device).set_(raw.untyped_storage())]
    bits = over_storage(raw, BITS[raw.element_size()])
    bits = bits.view(-1) if bits.is_contiguous() else bits
    is_lazy = raw.is_conj(), raw.is_neg()
    return [bits, torch.tensor(is_lazy, dtype=torch.uint8, device="cpu")] if any(is_lazy) else [bits]


def _of_bits(bits: torch.Tensor, max_nbytes: int) -> Fingerprint | None:
    places = _sampled(bits.numel(), bits.element_size(), max_nbytes)
    if places is not None:
        sample = np.asarray(bits[torch.unravel_index(torch.from_numpy(places), bits.shape)].cpu())
        return Fingerprint(digest_of(_bytes_of(sample)), round(bits.numel() / places.size))
    # DLPack locks no storage, and would copy a lazily copied one.
    own = bits.clone() if is_lazily_copied(bits) else bits.cpu()
    return fingerprint_of_array(np.from_dlpack(own), max_nbytes)


def _sampled(numel: int, itemsize: int, max_nbytes: int) -> np.ndarray[Any, Any] | None:
    """Return the numbers of the sampled elements, a row for each piece; None if all are read."""
    num = max(SAMPLE_NBYTES // itemsize, 1)
    if numel * itemsize <= max(max_nbytes, NUM_SAMPLES * SAMPLE_NBYTES) or numel <= NUM_SAMPLES * num:
        return None
    starts = np.arange(NUM_SAMPLES) * (numel - num) // (NUM_SAMPLES - 1)
    return starts[:, None] + np.arange(num)


def digest_of(data: Any) -> bytes:
    """Return 16 bytes that are equal for equal bytes, or for equal contiguous arrays."""
    return xxhash.xxh3_128_digest(data)


def _bytes_of(block: Any) -> memoryview:
    return np.ascontiguousarray(block).view(np.uint8).data


Cause = Literal["", "torch", "uncounted", "unknown", "moved", "may", "retyped"]


class Snapshot(NamedTuple):
    """A tensor or an array at one moment, which is not kept alive; `event` names the cell.

    An array has neither `reference` nor `info`. `values` may be a copy.
    """

    event: str
    object_id: int
    reference: Any
    info: TensorInfo | None
    fingerprint: Fingerprint | None
    max_nbytes: int
    values: Any = None
    operation: int = 0

    @property
    def nbytes_copied(self) -> int:
        return self.values.nbytes if self.values is not None else 0


class Change(NamedTuple):
    """A change of a tensor or an array since an event.

    `cause` is "torch" (torch has counted a write), "uncounted", "unknown" (values changed), "retyped" (other dtype or
    shape), "moved" (equal values elsewhere), "may" (a write was counted, the sample is unchanged), or empty. `rows` and
    `delta` are words; `facts` are other changes, and `alarm` new non-finite values.
    """

    since: str
    cause: Cause = ""
    coverage: str = ""
    was: str = ""
    rows: str = ""
    delta: str = ""
    size: float = 0.0
    facts: tuple[str, ...] = ()
    operation: int = 0
    alarm: str = ""


def take_snapshot(obj: Any, info: TensorInfo | None, event: str, max_nbytes: int) -> Snapshot:
    """Return the state of a tensor or an array; reads at most `max_nbytes`, or 64 KiB of samples."""
    known = None
    if info is None:
        if max_nbytes and not is_freed(obj):
            known = fingerprint_of_array(np.ndarray.view(obj, np.ndarray), max_nbytes)
        return Snapshot(event, id(obj), None, None, known, max_nbytes)
    if max_nbytes and info.data_state == "available" and not info._is_pending:
        known = fingerprint(obj, max_nbytes)
    return Snapshot(event, id(obj), TensorReference(obj), info, known, max_nbytes, operation=next_operation())


def change_between(before: Snapshot, after: Snapshot) -> Change | None:
    """Return the difference of two snapshots of one tensor, taken under one budget; None if there is none."""
    old, new = before.info, after.info
    if old is None or new is None or before.fingerprint is None or after.fingerprint is None:
        return None
    coverage = after.fingerprint.coverage
    if old.dtype != new.dtype or old.shape != new.shape:
        was = name_of(old.dtype) if old.dtype != new.dtype else ""
        return Change(before.event, "retyped", coverage, f"{was} {old.shape if old.shape != new.shape else ''}".strip())
    if old.device != new.device or old.stride != new.stride:
        return Change(before.event, "moved", "values not compared")
    if before.fingerprint.one_in != after.fingerprint.one_in:
        return None
    is_equal = before.fingerprint == after.fingerprint
    if is_equal and (old.storage and old.storage.address) != (new.storage and new.storage.address):
        return Change(before.event, "moved", coverage)
    if is_equal and after.fingerprint.one_in == 1:
        return None
    is_same_counter = before.reference.shares_counter(after.reference)
    is_counted = is_same_counter and old.version != new.version
    if is_equal:
        return Change(before.event, "may", coverage) if is_counted else None
    cause: Cause = "unknown" if not is_same_counter else "torch" if is_counted else "uncounted"
    return Change(before.event, cause, coverage, operation=before.operation)


def facts_between(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    facts = []
    old, new = before.info, after.info
    if old is None or new is None:
        return ()
    if old.dtype != new.dtype:
        facts.append(f"{name_of(old.dtype)} to {name_of(new.dtype)}")
    if old.shape != new.shape:
        facts.append(f"shape {old.shape} to {new.shape}")
    if old.device != new.device:
        facts.append(f"moved from {old.device} to {new.device}")
    elif new.data_state == "freed" != old.data_state:
        facts.append("its storage was freed")
    elif old.data_state != new.data_state:
        facts.append(f"{old.data_state} to {new.data_state}")
    elif old.storage and new.storage and old.storage.address != new.storage.address:
        facts.append("its elements lie elsewhere now")
    if old.shape == new.shape and old.stride != new.stride:
        facts.append(f"strides {old.stride} to {new.stride}")
    if old.requires_grad != new.requires_grad:
        facts.append(f"requires_grad: {old.requires_grad} to {new.requires_grad}")
    if old.has_grad != new.has_grad and None not in (old.has_grad, new.has_grad):
        facts.append("got a .grad" if new.has_grad else "lost its .grad")
    return tuple(facts)
