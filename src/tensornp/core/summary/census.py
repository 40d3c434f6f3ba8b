"""The table of all tensors and arrays of a namespace, as records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import numpy as np

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.memory.arrays import array_over
from tensornp.core.memory.changes import Change
from tensornp.core.memory.extents import Relation
from tensornp.core.memory.footprint import meet
from tensornp.core.memory.relations import Target
from tensornp.core.memory.storages import Found, Group, Holding, history_entry, merged, num_apart
from tensornp.core.memory.survey import Survey
from tensornp.core.summary.alike import Alike, alike
from tensornp.core.summary.owners import OWNERS, owner_of
from tensornp.core.summary.unasked import Unasked
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import Bare, is_storage, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.paths import Kind, expression_of
from tensornp.core.values.stats.alarms import alarm_text
from tensornp.core.values.stats.record import TensorStats

MAX_READ_NBYTES = 2**26
"""Bytes that are read to find NaN and infinities."""
MIN_ROWS_OF_GROUP = 8
"""Of a group that has so many, which are shown even where others must be left out for that."""
_bare_array = np.ndarray.view
_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class CensusRow:
    """One name in the table.

    Attributes
    ----------
    name, kind, shape, dtype, device
        As a user knows them; `shape` is None where it cannot be read.
    nbytes : int
        Bytes of its own elements, those that this process holds.
    shared_with : str
        The first name of its group, or another that it meets, and the relation to that: "w: same elements". Empty for
        the first one.
    holding : str
        "name", "history" or "traceback".
    change : Change or None
        Since it was last shown or converted.
    alarm : str
        "3 NaN", where so much was read; else empty.
    type_name : str
        The class of an array, or of another buffer.
    nbytes_elsewhere : int
        The bytes that other ranks hold of it, besides `nbytes`.
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
    alarm: str = ""
    type_name: str = ""
    nbytes_elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class CensusGroup:
    """The names that share memory: `nbytes` are those of their storages, `pinned_by` is what else keeps them.

    Of `num_alike` that have one name each, and are alike but for a number in it, the one row has the pattern.
    """

    rows: tuple[CensusRow, ...]
    nbytes: int
    pinned_by: tuple[str, ...]
    num_alike: int = 1

    @property
    def num_names(self) -> int:
        """How many names it tells."""
        return len(self.rows) * self.num_alike


@dataclass(frozen=True, slots=True)
class Census:
    """The table, and what it counts: `totals` are bytes by device and `owners` by owner, each storage once.

    In `num_unread` of its tensors and arrays no NaN was looked for, since no more than `bounds` is read.
    """

    groups: tuple[CensusGroup, ...]
    num_tensors: int
    num_arrays: int
    num_storages: int
    totals: dict[str, int]
    owners: dict[str, int]
    num_left_out: int
    stopped: str
    num_unread: int = 0
    bounds: tuple[str, ...] = ()

    def abridged(self, max_rows: int) -> Census:
        """Return what a table of at most `max_rows` names shows of this one; the totals stay."""
        limits = _limits([len(group.rows) for group in self.groups], max_rows)
        groups = tuple(
            replace(group, rows=group.rows[:limit]) for group, limit in zip(self.groups, limits, strict=False)
        )
        num_before, num_now = (sum(group.num_names for group in some) for some in (self.groups, groups))
        return replace(self, groups=groups, num_left_out=self.num_left_out + num_before - num_now)

    def folded(self) -> Census:
        """Return it with those groups as one that have one name each, which are alike but for a number."""
        names = [group.rows[0].name for group in self.groups]
        patterns = alike(names, [_unlike_name(group) for group in self.groups])
        return replace(self, groups=tuple(_together(one, self.groups) for one in patterns))


def _unlike_name(group: CensusGroup) -> object:
    """Return all that is told of a group but its name; None of one that has several, or is kept by something else."""
    return (replace(group.rows[0], name=""), group.nbytes) if len(group.rows) == 1 and not group.pinned_by else None


def _together(one: Alike, groups: tuple[CensusGroup, ...]) -> CensusGroup:
    first, num_alike = groups[one.members[0]], len(one.members)
    if num_alike == 1:
        return first
    row = replace(first.rows[0], name=f"{one.pattern} × {num_alike:,}", nbytes=num_alike * first.rows[0].nbytes)
    return CensusGroup((row,), num_alike * first.nbytes, (), num_alike)


def census_of(
    survey: Survey,
    *,
    max_rows: int,
    patterns: tuple[str, ...] = (),
    change_of: Any = None,
    max_read_nbytes: int = MAX_READ_NBYTES,
) -> Census:
    """Return the table of at most `max_rows` names; totals count everything, whatever is shown.

    Up to `max_read_nbytes` of its tensors and arrays are read to find NaN and infinities.
    """
    unasked = Unasked(max_read_nbytes)
    look = _Look(_once(change_of) if change_of is not None else None, _once(unasked.not_finite))
    groups = [group for group in survey.groups if not patterns or _matches(group, patterns)]
    groups.sort(key=lambda group: -group.nbytes)
    sizes = [len(_ordered(group)) for group in groups]
    shown = tuple(
        CensusGroup(_rows(survey, group, limit, look), group.nbytes, _pins(survey, group))
        for group, limit in zip(groups, _limits(sizes, max_rows), strict=False)
    )
    totals: dict[str, int] = defaultdict(int)
    owners = dict.fromkeys(OWNERS, 0)
    for group in groups:
        owners[owner_of(group)] += group.nbytes
        for device, nbytes in merged(group.spans).items():
            totals[device] += nbytes
    objects = {id(found.obj): found.obj for group in groups for found in group.found}
    num_arrays = sum(not (is_tensor(obj) or is_storage(obj)) for obj in objects.values())
    return Census(
        groups=shown,
        num_tensors=len(objects) - num_arrays,
        num_arrays=num_arrays,
        num_storages=sum(num_apart(group.spans) for group in groups),
        totals=dict(sorted(totals.items())),
        owners={owner: nbytes for owner, nbytes in owners.items() if nbytes},
        num_left_out=sum(sizes) - sum(len(group.rows) for group in shown),
        stopped=survey.stopped,
        num_unread=unasked.num_unread if max_read_nbytes else 0,
        bounds=tuple(unasked.bounds),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """What reads a tensor for its row: how it has changed, and what of it is not finite."""

    change_of: Callable[[Any, Any], Change | None] | None
    stats_of: Callable[[Any, Any], TensorStats | None] | None


def _once(read: Callable[[Any, Any], _Told | None]) -> Callable[[Any, Any], _Told | None]:
    """Return `read`, which reads a tensor, so that each is read once, under whatever names and how often asked."""
    known: dict[int, tuple[Any, _Told | None]] = {}

    def told(obj: Any, info: Any) -> _Told | None:
        if id(obj) not in known:
            # Held, so that nothing else takes its identity meanwhile.
            known[id(obj)] = obj, read(obj, info)
        return known[id(obj)][1]

    return told


def _limits(sizes: Iterable[int], max_rows: int) -> Iterator[int]:
    """Yield how many rows of each group are shown, for groups of these `sizes`, as long as there is room."""
    sizes, left = list(sizes), max_rows
    for i, size in enumerate(sizes):
        if left <= 0:
            return
        # One tensor that was shown again and again must not hide all others.
        others = len(sizes) - i - 1
        limit = min(size, max(left - others, min(left, MIN_ROWS_OF_GROUP)))
        left -= limit
        yield limit


def _matches(group: Group, patterns: tuple[str, ...]) -> bool:
    names = [expression_of(found.path) for found in group.found]
    return any(
        # First as it stands: for a wildcard, [3] would be one character.
        name == pattern or fnmatchcase(name, pattern) or name.startswith((f"{pattern}.", f"{pattern}["))
        for name in names
        for pattern in patterns
    )


def _rows(survey: Survey, group: Group, limit: int | None, look: _Look) -> tuple[CensusRow, ...]:
    ordered = _ordered(group)[:limit]
    first = ordered[0]
    rows = []
    for found in ordered:
        # Of tensors that consist of several, some of a group meet only others.
        beside = (
            first
            if meet(first.spans, found.spans)
            else next((one for one in ordered if one is not found and meet(one.spans, found.spans)), first)
        )
        shared = "" if found is first else f"{survey.name(beside)}: {_relation(beside.obj, found.obj)}"
        rows.append(_row(found.obj, survey.name(found), found, shared, look))
    return tuple(rows)


def _pins(survey: Survey, group: Group) -> tuple[str, ...]:
    """Return what else keeps a group than names: results of cells, also containers of it, and the last traceback."""
    pins: dict[str, None] = {}
    for found in group.found:
        if found.holding == "history":
            pins[history_entry(found.path)] = None
        elif found.holding == "traceback":
            pins["the last traceback"] = None
        pins |= survey.results.get(id(found.obj), {})
    return tuple(pins)


def _ordered(group: Group) -> list[Found]:
    """Return the names of a group, first the one that the others are compared with: the largest that has a name.

    Of an object that has a name, what else keeps it is no name of its own.
    """
    if len(group.found) == 1:
        return group.found
    named = {id(found.obj) for found in group.found if _is_own_name(found)}
    told = [found for found in group.found if _is_own_name(found) or id(found.obj) not in named]
    order = {"name": 0, "history": 1, "traceback": 2}
    # An array over a parameter has borrowed its memory.
    kinds = {"parameter": 0, "buffer": 0, "array": 2}

    def key(f: Found) -> Any:
        # An expanded tensor has more elements than its storage has bytes, and is no better name for it.
        return order[f.holding], f.kind == "grad", -min(_nbytes_of(f.obj), group.nbytes), kinds.get(f.kind, 1)

    return sorted(told, key=key)


def _is_own_name(found: Found) -> bool:
    """Return whether a name is more than what keeps the object besides: history, and the list of an optimizer."""
    return found.holding == "name" and ".param_groups[" not in expression_of(found.path)


def _nbytes_of(obj: Any) -> int:
    """Return the bytes of a tensor, a storage or an array, past whatever its class overrides."""
    bare: Any = obj
    try:
        if not is_storage(obj):
            bare = Bare(obj) if is_tensor(obj) else _bare_array(array_over(obj), np.ndarray)
        return int(bare.nbytes)
    except Exception:
        return 0


def _relation(first: Any, other: Any) -> Relation:
    """Return how two members of one group relate; those that only share a storage with a third one too."""
    try:
        # The same question as a card asks: of a lazy copy, no write is seen although the bytes are still the same.
        return Target(first, None).compare(other)[0] or "same storage"
    except Exception:
        return "may overlap"


def _row(obj: Any, name: str, found: Found, shared: str, look: _Look) -> CensusRow:
    change, alarm = None, ""
    try:
        if is_storage(obj):
            obj = tensor_of(obj)
        if is_tensor(obj):
            info = inspect(obj)
            change = look.change_of(obj, info) if look.change_of is not None else None
            alarm = alarm_text(look.stats_of(obj, info)) if look.stats_of is not None else ""
            # One that was freed, or is on the meta device, takes no byte.
            nbytes = info._held_nbytes - info._nbytes_elsewhere if found.spans else 0
            shape, dtype, device = info.shape, name_of(info.dtype), str(info.device)
            facts = shape, dtype, device, nbytes
            elsewhere = info._nbytes_elsewhere
            return CensusRow(name, found.kind, *facts, shared, found.holding, change, alarm, nbytes_elsewhere=elsewhere)
        array = _bare_array(array_over(obj), np.ndarray)
        nbytes = array.size * array.dtype.itemsize
        if look.stats_of is not None and type(obj) is np.ndarray:
            alarm = alarm_text(look.stats_of(obj, None))
        dtype = str(array.dtype)
        of_array = array.shape, dtype, "cpu", nbytes
        return CensusRow(name, found.kind, *of_array, shared, found.holding, alarm=alarm, type_name=type(obj).__name__)
    except Exception:
        return CensusRow(name, found.kind, None, type(obj).__name__, "", 0, shared, found.holding, change)
