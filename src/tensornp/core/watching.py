"""What happened to a tensor or an array between two moments: which rows, by how much, and by which road."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.apart import apart
from tensornp.core.arrays import has_left, origin_of
from tensornp.core.changes import Change, change_between, take_snapshot
from tensornp.core.changes import Snapshot as TensorSnapshot
from tensornp.core.convert import to_numpy
from tensornp.core.dtypes import name_of
from tensornp.core.facts import TensorInfo
from tensornp.core.fingerprint import BLOCK_NBYTES, Fingerprint, fingerprint_of_array
from tensornp.core.gather import check_parts, own_values
from tensornp.core.info import inspect
from tensornp.core.instances import is_tensor
from tensornp.core.own_copy import array_copied
from tensornp.core.places import NotReadError
from tensornp.core.rows import rows_and_delta

MAX_READ_NBYTES = 2**30
"""Bytes of one tensor that are read after each cell; of a larger one, a sample is."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tensor or an array at one moment; it is held weakly, and `values` are a copy, or None where it is too large.

    `nbytes` are those of the copy.
    """

    reference: Any
    snapshot: TensorSnapshot | Fingerprint | None
    values: Any
    has_grad: bool | None
    nbytes: int

    def is_of(self, obj: Any) -> bool:
        """Return whether this is still the same object."""
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


def sight(obj: Any, max_copy_nbytes: int, before: Sighting | None = None) -> Sighting:
    """Return what `obj`, a tensor or an array, is now; its values are copied if they take no more than that.

    `before` is the last sighting of it, whose copy is kept where nothing has changed.
    """
    if is_tensor(obj):
        info = inspect(obj)
        snapshot: Any = take_snapshot(obj, info, "", MAX_READ_NBYTES)
        nbytes = info.nbytes
        # Where it was not looked at, it is compared with what it was when it was seen last.
        has_grad = before.has_grad if info.has_grad is None and before is not None else info.has_grad
        plain: Any = obj
    else:
        # Nothing that a subclass overrides is asked.
        plain = np.ndarray.view(obj, np.ndarray)
        snapshot, nbytes, has_grad = _array_fingerprint(plain), plain.nbytes, False
    # What has no fingerprint must not be read: an array whose memory was given back, or the objects of an object array.
    can_copy = nbytes <= max_copy_nbytes and snapshot is not None
    is_unchanged = before is not None and before.values is not None and _is_equal(before.snapshot, snapshot)
    values = (before.values if before is not None and is_unchanged else _copied(plain)) if can_copy else None
    return Sighting(weakref.ref(obj), snapshot, values, has_grad, values.nbytes if values is not None else 0)


def _is_equal(before: Any, after: Any) -> bool:
    """Return whether two snapshots prove that every value is the same, in the same place of the same shape."""
    if not isinstance(after, TensorSnapshot):
        return bool(before == after and after is not None and after.one_in == 1)
    if not isinstance(before, TensorSnapshot) or before.fingerprint is None or before.fingerprint != after.fingerprint:
        return False
    old, new = before.info, after.info
    is_alike = (old.dtype, old.shape, old.stride, old.device) == (new.dtype, new.shape, new.stride, new.device)
    return is_alike and before.fingerprint.one_in == 1


def _array_fingerprint(array: np.ndarray[Any, Any]) -> Fingerprint | None:
    base = origin_of(array).tensor
    if array.dtype.hasobject or (base is not None and has_left(array, base)):
        return None
    try:
        return fingerprint_of_array(array, MAX_READ_NBYTES)
    except NotReadError:
        return None


def _copied(obj: Any) -> Any:
    try:
        values = _tensor_copied(obj) if is_tensor(obj) else array_copied(obj)
    except Exception:
        # There is nothing to copy: a meta tensor, or one that was freed.
        return None
    is_plain = isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)
    return np.ascontiguousarray(values).reshape(values.shape) if is_plain else None


def _tensor_copied(tensor: torch.Tensor) -> Any:
    info = inspect(tensor)
    if info.form != "strided" or info.device.type != "cpu":
        check_parts(tensor, info)
        return to_numpy(tensor, copy=True)
    return to_numpy(apart(own_values)(tensor, info))


def difference(before: Sighting, after: Sighting) -> Difference:
    """Return what happened to one object between two sightings of it."""
    facts: list[str] = []
    road = ""
    if isinstance(before.snapshot, TensorSnapshot) and isinstance(after.snapshot, TensorSnapshot):
        change = change_between(before.snapshot, after.snapshot)
        facts = _facts(before.snapshot.info, after.snapshot.info, change)
        road = _road(change)
        old, new = before.snapshot.fingerprint, after.snapshot.fingerprint
        info: TensorInfo | None = after.snapshot.info
    else:
        old, new, info = before.snapshot, after.snapshot, None  # type: ignore[assignment]
    if before.has_grad != after.has_grad and None not in (before.has_grad, after.has_grad):
        facts.append(".grad: None to set" if after.has_grad else ".grad: set to None")
    if old == new or old is None or new is None or old.way != new.way:
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


def _facts(old: TensorInfo, new: TensorInfo, change: Change | None) -> list[str]:
    facts = []
    if old.dtype != new.dtype:
        facts.append(f"{name_of(old.dtype)} to {name_of(new.dtype)}")
    if old.shape != new.shape:
        facts.append(f"shape {old.shape} to {new.shape}")
    if old.device != new.device:
        facts.append(f"moved from {old.device} to {new.device}")
    elif old.storage and new.storage and old.storage.address != new.storage.address:
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
