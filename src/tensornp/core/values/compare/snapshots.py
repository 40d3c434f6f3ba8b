"""Describe the change of a tensor or an array between two moments: rows, size and cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.memory.changes import Change, Snapshot, change_between, facts_between, take_snapshot
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED, form_of
from tensornp.core.values.compare.numbers import rows_and_delta
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import alarm_text


def snapshot_with_values(
    obj: Any, max_copy_nbytes: int, before: Snapshot | None = None, max_read_nbytes: int = 2**30
) -> Snapshot:
    """Return the state of an object, with a copy of up to so many bytes."""
    info = inspect(obj) if is_tensor(obj) else None
    return with_copy(take_snapshot(obj, info, "", max_read_nbytes), obj, max_copy_nbytes, before)


def with_copy(snapshot: Snapshot, obj: Any, max_nbytes: int, before: Snapshot | None = None) -> Snapshot:
    """Return a snapshot with a copy of an object of up to so many bytes; that of `before` if unchanged."""
    facts: Any = snapshot.info or np.ndarray.view(obj, np.ndarray)
    known = snapshot.fingerprint
    # Values without a fingerprint must not be read: freed memory, or the objects of an object array.
    if known is None or known.one_in > 1 or facts.nbytes > max_nbytes:
        return snapshot
    values = before.values if before is not None and before.fingerprint == known else None
    if values is None or (values.shape, values.dtype) != (facts.shape, facts.dtype):
        values = _copied(obj)
    return snapshot._replace(values=values)


@outside_modes
def _copied(obj: Any) -> Any:
    """Return a copy on the host, as a tensor if it is a strided one; None for several or masked arrays."""
    try:
        if not is_tensor(obj):
            return np.ndarray.view(obj, np.ndarray).copy()
        is_strided = form_of(obj).kind is STRIDED
        values = quietly(plain(obj).to, "cpu", copy=True) if is_strided else to_numpy(obj, copy=True)
    except Exception:
        # There is nothing to copy: a meta tensor, or one that was freed.
        return None
    return values if type(values) in (np.ndarray, torch.Tensor) else None


def with_rows(change: Change, before: Any, after: Any) -> Change:
    """Return a change with the rows that differ between two copies."""
    old, new = (to_numpy(values) if is_tensor(values) else values for values in (before, after))
    if old is None or new is None or (old.shape, old.dtype) != (new.shape, new.dtype):
        return change
    old, new = (np.ascontiguousarray(values).reshape(values.shape) for values in (old, new))
    # A copy is made after its fingerprint: where another thread writes, it may be of other values.
    if np.array_equal(old.reshape(-1).view(np.uint8), new.reshape(-1).view(np.uint8)):
        return change
    rows, delta, size, num_lost = rows_and_delta(old, new)
    alarm = alarm_text(scan(new, histogram=None)) if num_lost else ""
    return change._replace(rows=rows, delta=delta, size=size, alarm=alarm)


def what_changed(before: Snapshot, after: Snapshot) -> Change | None:
    change = change_between(before, after) or Change(before.event)
    change = change._replace(facts=facts_between(before, after))
    old, new = before.fingerprint, after.fingerprint
    if old is not None and new is not None and old != new and old.one_in == new.one_in:
        # Fingerprints know nothing of moved tensors, and copies tell the rest.
        if after.info is None or change.cause in ("torch", "uncounted", "unknown"):
            change = change._replace(rows=f"values changed{f' ({new.coverage})' if new.coverage else ''}")
        change = with_rows(change, before.values, after.values)
    return change if change.facts or change.rows or change.cause == "may" else None
