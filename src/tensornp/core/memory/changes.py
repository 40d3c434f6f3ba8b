"""Whether a tensor is still what it was when someone looked, and by which road it changed if not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from tensornp.core.memory.fingerprint import ALL_BLOCKS, Fingerprint, fingerprint
from tensornp.core.memory.identity import VersionCounter, counter_of
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo

Road = Literal["torch", "behind", "unknown", "moved", "may", "retyped"]
_ROADS: dict[Road, str] = {
    "torch": "and torch has counted a write since then",
    "behind": "behind torch's back: by NumPy, .data, a fused optimizer or DLPack",
    "unknown": "by a road that cannot be told",
    "moved": "its elements lie elsewhere now",
    "retyped": "so it has other elements now",
    "may": "torch has counted a write, and the sample that was read is unchanged",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a tensor was at one moment; no value is kept.

    Attributes
    ----------
    event : str
        What happened then, and where: "the conversion in In[4]".
    info : TensorInfo
    fingerprint : Fingerprint or None
        None where the bits cannot be read, or must not be.
    max_nbytes : int
        The budget under which the fingerprint was taken.
    counter : VersionCounter or None
        That of the tensor, where it can be kept; another alias of the same elements may have another one.
    """

    event: str
    info: TensorInfo
    fingerprint: Fingerprint | None
    max_nbytes: int
    counter: VersionCounter | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """How a tensor has changed.

    Attributes
    ----------
    since : str
        "the conversion in In[4]".
    road : str
        "torch", "behind" torch's back, "unknown" (values changed); "retyped" (another dtype or shape); "moved" (equal
        values in another storage, or values that are not compared, on another device or with other strides); "may"
        (torch has counted a write, the sample is unchanged).
    coverage : str
        What was compared: "all blocks" or "sampled 1/64".
    was : str
        Dtype and shape before, where they were others.
    """

    since: str
    road: Road
    coverage: str
    was: str = ""

    @property
    def text(self) -> str:
        """A few words: "changed since the conversion in In[4] · behind torch's back"."""
        if self.road == "retyped":
            return f"was {self.was} at {self.since}"
        verb = {"moved": "moved", "may": "written"}.get(self.road, "changed")
        road = {"torch": "through torch", "behind": "behind torch's back"}.get(self.road, "")
        sampled = "" if self.coverage == ALL_BLOCKS else self.coverage
        return " · ".join(filter(None, (f"{verb} since {self.since}", road, sampled)))

    @property
    def sentence(self) -> str:
        """The same with the road and what was compared."""
        words = self.text.partition(" · ")[0]
        return f"{words[0].upper()}{words[1:]}, {_ROADS[self.road]} ({self.coverage})."


def take_snapshot(tensor: torch.Tensor, info: TensorInfo, event: str, max_nbytes: int) -> Snapshot:
    """Return what `tensor` is now; reads at most `max_nbytes`, or 64 KiB of samples, and nothing if that is 0."""
    known = fingerprint(tensor, max_nbytes, info) if max_nbytes and info.data_state == "available" else None
    return Snapshot(event, info, known, max_nbytes, counter_of(tensor))


def change_between(before: Snapshot, after: Snapshot) -> Change | None:
    """Return how two snapshots of one tensor, taken under one budget, differ; None where they do not."""
    old, new = before.info, after.info
    if before.fingerprint is None or after.fingerprint is None:
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
        road: Road = "unknown" if not is_told else "torch" if is_counted else "behind"
        return Change(before.event, road, coverage)
    if has_moved:
        return Change(before.event, "moved", coverage)
    if is_counted and after.fingerprint.one_in > 1:
        return Change(before.event, "may", coverage)
    return None


def _place(info: TensorInfo) -> int | None:
    return info.storage.address if info.storage else None
