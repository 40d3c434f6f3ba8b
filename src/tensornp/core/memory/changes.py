"""What a tensor or an array was when someone looked, and how it has changed since: for cards, tables and the watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.memory.fingerprint import Fingerprint, fingerprint_or_why
from tensornp.core.memory.identity import TensorReference, VersionCounter
from tensornp.core.memory.saved import next_operation
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo

Cause = Literal["", "torch", "uncounted", "unknown", "moved", "may", "retyped", "unreadable", "readable"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tensor or an array at one moment; it is not kept alive.

    Attributes
    ----------
    event : str
        What happened then, and where: "the conversion in In[4]".
    reference : TensorReference or weakref.ref
    info : TensorInfo or None
        None for an array.
    fingerprint : Fingerprint or None
        None where the bits cannot be read, or must not be.
    max_nbytes : int
        The budget under which the fingerprint was taken.
    values : numpy.ndarray or None
        A copy of the values, where one was asked for and could be had.
    has_grad : bool or None
        None where that has never been looked at.
    operation : int
        The number of the first operation that autograd may have recorded since.
    unreadable : str
        Why its memory cannot be read, as where the file behind it has become shorter.
    """

    event: str
    reference: Any
    info: TensorInfo | None
    fingerprint: Fingerprint | None
    max_nbytes: int
    values: Any = None
    has_grad: bool | None = None
    operation: int = 0
    unreadable: str = ""

    @property
    def nbytes_copied(self) -> int:
        """Bytes that its copy of the values takes."""
        return self.values.nbytes if self.values is not None else 0

    @property
    def left_out(self) -> str:
        """Why not all of it was read: "sampled", "unread", "pending" (a collective), or empty."""
        if self.info is not None and self.info._is_pending:
            return "pending"
        if not self.max_nbytes:
            return "unread"
        return "sampled" if self.fingerprint is not None and self.fingerprint.one_in > 1 else ""

    @property
    def counter(self) -> VersionCounter | None:
        """That of the tensor, where it can be kept; another alias of the same elements may have another one."""
        return self.reference.counter if isinstance(self.reference, TensorReference) else None

    @property
    def object_id(self) -> int:
        """What tells its object from all others that live: equal for two snapshots of one."""
        return self.reference.id if isinstance(self.reference, TensorReference) else id(self.reference)

    def is_in_place_of(self, obj: Any) -> bool:
        """Return whether `obj` stands where this one stood: it may be another object if its storage is another one."""
        if isinstance(self.reference, TensorReference):
            return is_tensor(obj) and self.reference.id == id(obj)
        return self.reference() is obj


@dataclass(frozen=True, slots=True)
class Change:
    """How a tensor or an array has changed.

    Attributes
    ----------
    since : str
        "the conversion in In[4]".
    cause : str
        "torch" (values changed, and torch has counted a write, which need not be the only one), "uncounted" (it has
        counted none), "unknown" (that cannot be told); "retyped" (another dtype or shape); "moved" (equal values in
        another storage, or values that are not compared, on another device or with other strides); "may" (torch has
        counted a write, the sample is unchanged); "unreadable" (its memory cannot be read any more), "readable" (it
        can be again). Empty where no cause is known: of arrays, and of facts.
    coverage : str
        What was compared: "all blocks" or "sampled 1/64"; of what is unreadable, why.
    was : str
        Dtype and shape before, where they were others.
    rows : str
        Which indices of the first dimension changed: "rows 0, 3–5 of 10"; empty where that was not looked at.
    delta : str
        The largest absolute difference and where: "largest |Δ| 2 at [3, 1]".
    size : float
        The same as a number; 0 where it is not known.
    facts : tuple of str
        What changed besides the values, where that was asked for: "got a .grad", "moved from cpu to cuda:0".
    operation : int
        The number of the first operation that autograd may have recorded since.
    alarm : str
        What is not finite now where elements were before: "all NaN", "3 NaN, 1 +Inf"; empty where that is not known.
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


def take_snapshot(tensor: torch.Tensor, info: TensorInfo, event: str, max_nbytes: int) -> Snapshot:
    """Return what `tensor` is now; reads at most `max_nbytes`, or 64 KiB of samples, and nothing if that is 0."""
    is_read = max_nbytes and info.data_state == "available"
    known, why = fingerprint_or_why(tensor, max_nbytes, info) if is_read else (None, "")
    reference = TensorReference(tensor)
    operation = next_operation()
    return Snapshot(event, reference, info, known, max_nbytes, operation=operation, unreadable=why)


def change_between(before: Snapshot, after: Snapshot) -> Change | None:
    """Return how two snapshots of one tensor, taken under one budget, differ; None where they do not."""
    old, new = before.info, after.info
    if after.unreadable and before.fingerprint is not None:
        return Change(before.event, "unreadable", after.unreadable)
    if before.unreadable and after.fingerprint is not None:
        return Change(before.event, "readable", "values not compared")
    if old is None or new is None or before.fingerprint is None or after.fingerprint is None:
        return None
    coverage = after.fingerprint.coverage
    has_moved = old.device != new.device or _place(old) != _place(new)
    is_same_counter = before.counter is not None and before.counter == after.counter
    is_counted = is_same_counter and old.version != new.version
    if old.dtype != new.dtype or old.shape != new.shape:
        was = name_of(old.dtype) if old.dtype != new.dtype else ""
        return Change(before.event, "retyped", coverage, f"{was} {old.shape if old.shape != new.shape else ''}".strip())
    if old.device != new.device or old.stride != new.stride:
        # Fingerprints are taken in the order of memory, and each kind of device has its own.
        return Change(before.event, "moved", "values not compared")
    if (before.fingerprint.way, before.fingerprint.one_in) != (after.fingerprint.way, after.fingerprint.one_in):
        return None
    if before.fingerprint != after.fingerprint:
        is_told = is_same_counter and new.version is not None
        cause: Cause = "unknown" if not is_told else "torch" if is_counted else "uncounted"
        return Change(before.event, cause, coverage, operation=before.operation)
    if has_moved:
        return Change(before.event, "moved", coverage)
    if is_counted and after.fingerprint.one_in > 1:
        return Change(before.event, "may", coverage)
    return None


def facts_between(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return what two snapshots of one object say is different besides its values."""
    facts = []
    old, new = before.info, after.info
    if old is not None and new is not None:
        if old.dtype != new.dtype:
            facts.append(f"{name_of(old.dtype)} to {name_of(new.dtype)}")
        if old.shape != new.shape:
            facts.append(f"shape {old.shape} to {new.shape}")
        moved = _moved(before, after)
        if old.device != new.device:
            facts.append(f"moved from {old.device} to {new.device}")
        elif moved:
            facts.append(moved)
        if old.shape == new.shape and old.stride != new.stride:
            facts.append(f"strides {old.stride} to {new.stride}")
        if old.data_state != new.data_state and moved != _FREED:
            facts.append(f"{old.data_state} to {new.data_state}")
        if old.requires_grad != new.requires_grad:
            facts.append(f"requires_grad: {old.requires_grad} to {new.requires_grad}")
    if before.has_grad != after.has_grad and None not in (before.has_grad, after.has_grad):
        facts.append("got a .grad" if after.has_grad else "lost its .grad")
    return tuple(facts)


def _moved(before: Snapshot, after: Snapshot) -> str:
    """Return what has happened to the storage that elements lie in; nothing if they are where they were."""
    old, new = before.info, after.info
    if old is None or new is None or not old.storage or not new.storage:
        return ""
    if before.reference.storages != after.reference.storages:
        return "its storage is another one now"
    if new.data_state == "freed" != old.data_state:
        return _FREED
    if old.storage.nbytes != new.storage.nbytes:
        return "its storage was resized"
    return "its elements lie elsewhere now, in the same storage" if _place(old) != _place(new) else ""


_FREED = "its storage was freed"


def _place(info: TensorInfo) -> int | None:
    return info.storage.address if info.storage else None
