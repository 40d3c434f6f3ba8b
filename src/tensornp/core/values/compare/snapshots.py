"""Describe the change of a tensor or an array between two moments: rows, size and cause."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.memory.changes import (
    Change,
    Snapshot,
    change_between,
    facts_between,
    fingerprint_of_array,
    take_snapshot,
)
from tensornp.core.memory.footprint import has_left, origin_of
from tensornp.core.tensor.info import inspect
from tensornp.core.values.compare.numbers import Difference, rows_and_delta
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import alarm_text


def snapshot_with_values(
    obj: Any, max_copy_nbytes: int, before: Snapshot | None = None, max_read_nbytes: int = 2**30
) -> Snapshot:
    """Return the state of an object, with a copy of up to so many bytes; that of `before` if unchanged."""
    plain: Any = obj
    if is_tensor(obj):
        info = inspect(obj)
        # A gradient that could not be looked at is compared with the last one seen.
        has_grad = before.has_grad if info.has_grad is None and before is not None else info.has_grad
        snapshot = take_snapshot(obj, info, "", 0 if info._is_pending else max_read_nbytes)
        snapshot = replace(snapshot, has_grad=has_grad)
        nbytes = info.nbytes
    else:
        # Nothing that a subclass overrides is asked.
        plain = np.ndarray.view(obj, np.ndarray)
        base = origin_of(plain).tensor
        is_readable = max_read_nbytes and (base is None or not has_left(plain, base))
        found = fingerprint_of_array(plain, max_read_nbytes) if is_readable else None
        snapshot = Snapshot("", weakref.ref(obj), None, found, max_read_nbytes, has_grad=False)
        nbytes = plain.nbytes
    known = snapshot.fingerprint
    # Values without a fingerprint must not be read: freed memory, or the objects of an object array.
    if known is None or known.one_in > 1 or nbytes > max_copy_nbytes:
        return snapshot
    if before is not None and before.values is not None and before.fingerprint == known:
        old, new = before.info, snapshot.info
        facts = [(one.dtype, one.shape, one.stride, one.device) if one is not None else None for one in (old, new)]
        if facts[0] == facts[1]:
            # Every value has stayed in its place.
            return replace(snapshot, values=before.values)
    return replace(snapshot, values=_copied(plain))


def _copied(obj: Any) -> Any:
    try:
        values = to_numpy(obj, copy=True) if is_tensor(obj) else obj.copy()
    except Exception:
        # There is nothing to copy: a meta tensor, or one that was freed.
        return None
    if is_tensor(obj) and type(values) is not np.ndarray:
        # Several arrays, or a masked one.
        return None
    return np.ascontiguousarray(values).reshape(values.shape) if isinstance(values, np.ndarray) else None


def with_rows(change: Change, before: Any, tensor: Any) -> Change:
    """Return a change with the rows of `tensor` that differ from an earlier copy of it."""
    old, new = _copied(before), _copied(tensor)
    if old is None or new is None or (old.shape, old.dtype) != (new.shape, new.dtype):
        return change
    found = rows_and_delta(old, new)
    return replace(change, rows=found.rows, delta=found.delta, size=found.size)


def what_changed(before: Snapshot, after: Snapshot) -> Change | None:
    change = change_between(before, after) or Change(before.event)
    change = replace(change, facts=facts_between(before, after))
    old, new = before.fingerprint, after.fingerprint
    if old is not None and new is not None and old != new and old.one_in == new.one_in:
        # Fingerprints know nothing of moved tensors, and copies tell the rest.
        # A copy is made after its fingerprint: where another thread writes, it may be of other values.
        a, b = before.values, after.values
        has_copies = a is not None and b is not None and (a.shape, a.dtype) == (b.shape, b.dtype)
        has_copies = has_copies and not np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8))
        is_told = after.info is None or change.cause in ("torch", "uncounted", "unknown")
        if is_told or has_copies:
            sampled = f" ({new.coverage})" if new.coverage else ""
            told = Difference(f"values changed{sampled}", "", 0.0)
            if has_copies:
                told = rows_and_delta(before.values, after.values)
            alarm = alarm_text(scan(after.values, histogram=None)) if told.num_lost else ""
            change = replace(change, rows=told.rows, delta=told.delta, size=told.size, alarm=alarm)
    return change if change.facts or change.rows or change.cause == "may" else None
