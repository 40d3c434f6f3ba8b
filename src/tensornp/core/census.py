"""The table of all tensors and arrays of a namespace, as records."""

from __future__ import annotations

from dataclasses import dataclass

from tensornp.core.changes import Change
from tensornp.core.groups import Holding
from tensornp.core.paths import Kind

SORTS = ("bytes", "name", "shape", "dtype", "device")


@dataclass(frozen=True, slots=True)
class CensusRow:
    """One name in the table.

    Attributes
    ----------
    name, kind, shape, dtype, device
        As a user knows them; `shape` is None where it cannot be read.
    nbytes : int
        Bytes of its own elements.
    shared_with : str
        The first name of its group, and the relation to that: "w: same elements". Empty for the first one.
    holding : str
        "name", "history" or "traceback".
    change : Change or None
        Since it was last shown or converted.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    nbytes: int
    shared_with: str
    holding: Holding
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class CensusGroup:
    """The names that share memory: `nbytes` are those of their storages, `pinned_by` is what else keeps them."""

    rows: tuple[CensusRow, ...]
    nbytes: int
    pinned_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Census:
    """The table, and what it counts: `totals` are bytes by device, each storage once."""

    groups: tuple[CensusGroup, ...]
    num_tensors: int
    num_arrays: int
    num_storages: int
    totals: dict[str, int]
    num_left_out: int
    stopped: str
