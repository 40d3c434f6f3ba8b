"""What happened to a tensor or an array between two moments: which rows, by how much, and by which road."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import apart
from tensornp.core.memory.arrays import has_left, origin_of
from tensornp.core.memory.changes import Change, change_between, take_snapshot
from tensornp.core.memory.changes import Snapshot as TensorSnapshot
from tensornp.core.memory.extents import Extent
from tensornp.core.memory.fingerprint import BLOCK_NBYTES, NUM_SAMPLES, SAMPLE_NBYTES, Fingerprint, fingerprint_of_array
from tensornp.core.memory.footprint import extents_of
from tensornp.core.memory.identity import TensorReference
from tensornp.core.memory.own_copy import array_copied
from tensornp.core.memory.still import still
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.values.gather import check_parts, own_values
from tensornp.core.values.rows import rows_and_delta
from tensornp.errors import NotReadError

MAX_READ_NBYTES = 2**30
"""Bytes that are read after each cell; of what is left then, a sample is."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tensor or an array at one moment, which is not kept alive.

    Attributes
    ----------
    reference : TensorReference or weakref.ref
    values : numpy.ndarray or None
        A copy of `nbytes` bytes, where the budget allowed one.
    has_grad : bool or None
        None where that has never been looked at.
    nbytes_read : int
        What was read to know a change again.
    left_out : str
        Why not all was: "sampled" or "unread", since the budget was spent; "pending", since a collective is; or empty.
    """

    reference: Any
    snapshot: TensorSnapshot | Fingerprint | None
    values: Any
    has_grad: bool | None
    nbytes: int
    nbytes_read: int = 0
    left_out: str = ""

    def is_of(self, obj: Any) -> bool:
        """Return whether `obj` is in the place of this object: it may be another one if its storage is."""
        if isinstance(self.reference, TensorReference):
            return is_tensor(obj) and self.reference.id == id(obj)
        return self.reference() is obj


@dataclass(frozen=True, slots=True)
class Difference:
    """What has changed between two sightings of one object; empty texts say that nothing did.

    Attributes
    ----------
    rows : str
        Which indices of the first dimension changed: "rows 0, 3–5 of 10".
    delta : str
        The largest absolute difference and where: "largest |Δ| 2 at [3, 1]".
    road : str
        "through torch", or "behind torch's back".
    facts : tuple of str
        What changed besides the values: ".grad: None to set", "moved from cpu to cuda:0".
    """

    rows: str = ""
    delta: str = ""
    road: str = ""
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it in one line; empty if nothing changed."""
        return " · ".join(filter(None, (self.rows, self.delta, self.road, *self.facts)))


def sight(
    obj: Any, max_copy_nbytes: int, before: Sighting | None = None, max_read_nbytes: int = MAX_READ_NBYTES
) -> Sighting:
    """Return what `obj`, a tensor or an array, is now; its values are copied if they take no more than that.

    Of what has more than `max_read_nbytes`, a sample is read, and nothing if even that is more. `before` is the last
    sighting of it, whose copy is kept where nothing has changed.
    """
    plain: Any
    if is_tensor(obj):
        info = inspect(obj)
        nbytes, has_grad, plain = info.nbytes, info.has_grad, obj
        if has_grad is None and before is not None:
            # Where it was not looked at, it is compared with what it was when it was seen last.
            has_grad = before.has_grad
        budget, nbytes_read, left_out = _share_of(_extents_of(obj, info), max_read_nbytes)
        if info.is_pending:
            budget, nbytes_read, left_out = 0, 0, "pending"
        snapshot: Any = take_snapshot(obj, info, "", budget)
        known = snapshot.fingerprint
        reference: Any = TensorReference(obj, snapshot.counter)
    else:
        # Nothing that a subclass overrides is asked.
        plain = np.ndarray.view(obj, np.ndarray)
        nbytes, has_grad, reference = plain.nbytes, False, weakref.ref(obj)
        budget, nbytes_read, left_out = _share_of(_extents_of(plain, None), max_read_nbytes)
        known = snapshot = _array_fingerprint(plain, budget)
        if known is None and left_out == "sampled":
            nbytes_read, left_out = 0, "unread"
    # What has no fingerprint must not be read: an array whose memory was given back, or the objects of an object array.
    can_copy = known is not None and known.one_in == 1 and nbytes <= max_copy_nbytes
    is_unchanged = before is not None and before.values is not None and _is_equal(before.snapshot, snapshot)
    values = (before.values if before is not None and is_unchanged else _copied(plain)) if can_copy else None
    return Sighting(
        reference, snapshot, values, has_grad, values.nbytes if values is not None else 0, nbytes_read, left_out
    )


def _extents_of(obj: Any, info: TensorInfo | None) -> tuple[Extent, ...]:
    try:
        return extents_of(obj, info)
    except Exception:
        # What cannot be told apart has no fingerprint either.
        return ()


def _share_of(extents: tuple[Extent, ...], left: int) -> tuple[int, int, str]:
    """Return up to how many bytes the whole is read, how many are read of it, and what is left out."""
    each = [
        extent.itemsize * math.prod(n for n, step in zip(extent.shape, extent.strides, strict=True) if step)
        for extent in extents
    ]
    if sum(each) <= left:
        return left, sum(each), ""
    sample = sum(min(nbytes, NUM_SAMPLES * SAMPLE_NBYTES) for nbytes in each)
    return (1, sample, "sampled") if sample <= left else (0, 0, "unread")


def _is_equal(before: Any, after: Any) -> bool:
    """Return whether two snapshots prove that every value is the same, in the same place of the same shape."""
    if not isinstance(after, TensorSnapshot):
        return bool(before == after and after is not None and after.one_in == 1)
    if not isinstance(before, TensorSnapshot) or before.fingerprint is None or before.fingerprint != after.fingerprint:
        return False
    old, new = before.info, after.info
    is_alike = (old.dtype, old.shape, old.stride, old.device) == (new.dtype, new.shape, new.stride, new.device)
    return is_alike and before.fingerprint.one_in == 1


def _array_fingerprint(array: np.ndarray[Any, Any], max_nbytes: int) -> Fingerprint | None:
    base = origin_of(array).tensor
    if not max_nbytes or array.dtype.hasobject or (base is not None and has_left(array, base)):
        return None
    try:
        return fingerprint_of_array(array, max_nbytes)
    except NotReadError:
        return None


def _copied(obj: Any) -> Any:
    try:
        values = _tensor_copied(obj) if is_tensor(obj) else array_copied(obj)
    except Exception:
        # There is nothing to copy: a meta tensor, or one that was freed.
        return None
    return np.ascontiguousarray(values).reshape(values.shape) if isinstance(values, np.ndarray) else None


def _tensor_copied(tensor: torch.Tensor) -> Any:
    info = inspect(tensor)
    if not info.kind.gives_one_array:
        # What they become is no one plain array.
        return None
    if info.kind is not STRIDED or info.device.type != "cpu":
        check_parts(tensor, info)
        with threads.GATE:
            return to_numpy(apart(still)(tensor, info), copy=True)
    return to_numpy(apart(own_values)(tensor, info))


def difference(before: Sighting, after: Sighting) -> Difference:
    """Return what happened to one object between two sightings of it; values are compared where both read as much."""
    facts: list[str] = []
    road = ""
    if isinstance(before.snapshot, TensorSnapshot) and isinstance(after.snapshot, TensorSnapshot):
        change = change_between(before.snapshot, after.snapshot)
        is_elsewhere = before.reference.storages != after.reference.storages
        facts = _facts(before.snapshot.info, after.snapshot.info, change, is_elsewhere=is_elsewhere)
        road = _road(change)
        old, new = before.snapshot.fingerprint, after.snapshot.fingerprint
        info: TensorInfo | None = after.snapshot.info
    else:
        old, new, info = before.snapshot, after.snapshot, None  # type: ignore[assignment]
    if before.has_grad != after.has_grad and None not in (before.has_grad, after.has_grad):
        facts.append(".grad: None to set" if after.has_grad else ".grad: set to None")
    if old == new or old is None or new is None or (old.way, old.one_in) != (new.way, new.one_in):
        return Difference(facts=tuple(facts))
    has_copies = _is_comparable(before, after)
    # Of what has moved, fingerprints tell nothing, and copies tell the rest.
    if info is not None and not road and (not has_copies or before.values.tobytes() == after.values.tobytes()):
        return Difference(facts=tuple(facts))
    rows, delta = rows_and_delta(before.values, after.values) if has_copies else (_by_blocks(old, new, info), "")
    return Difference(rows, delta, road, tuple(facts))


def _road(change: Change | None) -> str:
    if change is None:
        return ""
    roads = {"torch": "through torch", "behind": "behind torch's back", "unknown": "by a road that cannot be told"}
    return roads.get(change.road, "")


def _facts(old: TensorInfo, new: TensorInfo, change: Change | None, *, is_elsewhere: bool) -> list[str]:
    facts = []
    if old.dtype != new.dtype:
        facts.append(f"{name_of(old.dtype)} to {name_of(new.dtype)}")
    if old.shape != new.shape:
        facts.append(f"shape {old.shape} to {new.shape}")
    if old.device != new.device:
        facts.append(f"moved from {old.device} to {new.device}")
    elif old.storage and new.storage and (is_elsewhere or old.storage.address != new.storage.address):
        facts.append("its storage is another one now")
    if old.shape == new.shape and old.stride != new.stride:
        facts.append(f"strides {old.stride} to {new.stride}")
    if old.data_state != new.data_state:
        facts.append(f"{old.data_state} to {new.data_state}")
    if old.requires_grad != new.requires_grad:
        facts.append(f"requires_grad: {old.requires_grad} to {new.requires_grad}")
    if change is not None and change.road == "may":
        facts.append(f"torch has counted a write; the sample is unchanged ({change.coverage})")
    return facts


def _is_comparable(before: Sighting, after: Sighting) -> bool:
    """Return whether there are copies of the values from both moments, of one shape and dtype."""
    old, new = before.values, after.values
    return old is not None and new is not None and old.shape == new.shape and old.dtype == new.dtype


def _by_blocks(old: Fingerprint | None, new: Fingerprint | None, info: TensorInfo | None) -> str:
    """Return what the blocks of the fingerprints tell of a tensor that is too large to be copied."""
    if old is None or new is None or old.one_in != new.one_in or len(old.blocks) != len(new.blocks):
        return "values changed"
    changed = [i for i, (a, b) in enumerate(zip(old.blocks, new.blocks, strict=True)) if a != b]
    if new.one_in > 1:
        return f"values changed in {len(changed)} of {len(new.blocks)} samples ({new.coverage})"
    if info is None or not info.is_contiguous or not info.shape:
        return f"values changed in {len(changed):,} of {len(new.blocks):,} blocks"
    row = max(info.nbytes // info.shape[0], 1)
    rows = sorted({r for i in changed for r in (i * BLOCK_NBYTES // row, ((i + 1) * BLOCK_NBYTES - 1) // row)})
    last = min(rows[-1], info.shape[0] - 1)
    return f"within rows {rows[0]:,}–{last:,} of {info.shape[0]:,} (too large for a copy to compare with)"
