"""Gather the table of all tensors and arrays of a namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.memory.aliases import Target
from tensornp.core.memory.extents import nbytes_by_device
from tensornp.core.memory.storages import RESULTS, Found, Group, Survey, history_entry
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import Bare
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.paths import Kind, first_step, steps_of

MIN_ROWS_OF_GROUP = 8
"""Rows of a group that are shown even if other groups must be left out for them."""
OWNERS = ("parameters and buffers", "gradients", "optimizer states", "variables", RESULTS[0])
_NOUNS = {"parameter": "parameter", "buffer": "buffer", "grad": "gradient", "array": "array"}
_is_leaf: Any = torch.Tensor.is_leaf.__get__  # type: ignore[attr-defined]
_KIND_ORDER = {"parameter": 0, "buffer": 0, "array": 2}


class CensusRow(NamedTuple):
    """One name in the table; `shared_with` is the first name of its group, and the relation."""

    name: str
    kind: Kind
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    nbytes: int
    shared_with: str


class CensusGroup(NamedTuple):
    """The names that share memory."""

    rows: tuple[CensusRow, ...]
    nbytes: int
    kept_by: tuple[str, ...]


class Owner(NamedTuple):
    """A variable: its class with the number of tensors, or shape and dtype of its own tensor."""

    name: str
    what: str
    nbytes: int


class Census(NamedTuple):
    """The table and its totals by device and by owner, each storage once; the last error apart.

    Graphs hold what they saved for backward: tensors `with_graph` may keep more alive than is counted.
    """

    groups: tuple[CensusGroup, ...]
    num_tensors: int
    num_arrays: int
    totals: dict[str, int]
    owners: dict[str, int]
    num_left_out: int
    stopped: str
    variables: tuple[Owner, ...] = ()
    nbytes_of_error: int = 0
    with_graph: tuple[str, ...] = ()

    def abridged(self, max_rows: int) -> Census:
        """Return the table with at most `max_rows` names; the totals stay."""
        limits = _limits([len(group.rows) for group in self.groups], max_rows)
        pairs = zip(self.groups, limits, strict=False)
        groups = tuple(group._replace(rows=group.rows[:limit]) for group, limit in pairs)
        num_before, num_now = (sum(len(group.rows) for group in some) for some in (self.groups, groups))
        return self._replace(groups=groups, num_left_out=self.num_left_out + num_before - num_now)


def census_of(survey: Survey, *, max_rows: int, patterns: tuple[str, ...] = ()) -> Census:
    """Return the table of at most `max_rows` names."""
    groups = [group for group in survey.groups if not patterns or _matches(group, patterns)]
    groups.sort(key=lambda group: -group.nbytes)
    listed = [_ordered(group) for group in groups]
    firsts = list(map(_first, listed))
    sizes = list(map(len, listed))
    shown: list[CensusGroup] = []
    for group, ordered, limit in zip(groups, listed, _limits(sizes, max_rows), strict=False):
        holders = [history_entry(found.path) for found in group.found if found.is_result]
        shown.append(CensusGroup(_rows(ordered[:limit]), group.nbytes, tuple(dict.fromkeys(holders))))
    owners = dict.fromkeys(OWNERS, 0)
    for group in groups:
        owners[_owner_of(group)] += group.nbytes
    spans = [span for group in groups for span in group.spans]
    objects = {id(found.obj): found.obj for group in groups for found in group.found}
    num_arrays = sum(not is_tensor(obj) for obj in objects.values())
    return Census(
        groups=tuple(shown),
        num_tensors=len(objects) - num_arrays,
        num_arrays=num_arrays,
        totals=nbytes_by_device(spans),
        owners={owner: nbytes for owner, nbytes in owners.items() if nbytes},
        num_left_out=sum(sizes) - sum(len(group.rows) for group in shown),
        stopped=survey.stopped,
        variables=_variables(groups, firsts, shown),
        with_graph=tuple(found.name for found in firsts if _has_graph(found.obj)),
    )


def _has_graph(obj: Any) -> bool:
    # torch raises for a view whose graph is ambiguous.
    with suppress(RuntimeError):
        return is_tensor(obj) and not _is_leaf(obj)
    return False


def _variables(groups: list[Group], firsts: list[Found], shown: list[CensusGroup]) -> tuple[Owner, ...]:
    """Return a line for each variable, the largest first; memory with several names is that of the first."""
    kinds: dict[tuple[str, str], Counter[str]] = {}
    nbytes, num_shared, first_rows = Counter[Any](), Counter[Any](), dict[Any, str]()
    # An optimizer reaches the gradients of a model, too.
    unguarded = Unguarded()
    owners = {id(unguarded.grad_of(one.obj)): one.owner for one in firsts if one.kind == "parameter"}
    for i, (group, found) in enumerate(zip(groups, firsts, strict=True)):
        variable = owners.get(id(found.obj), found.owner)
        state = "state" if _owner_of(group) == "optimizer states" else ""
        kinds.setdefault(variable, Counter())[state or _NOUNS.get(found.kind, "tensor")] += 1
        nbytes[variable] += group.nbytes
        if len(group.found) > 1:
            num_shared.update({one.owner for one in group.found if _is_own_name(one)} - {variable})
        row = next(iter(shown[i].rows), None) if i < len(shown) else None
        if row is not None and row.name == variable[0]:
            # A view may keep a storage that nothing else reaches.
            part = f", {format_nbytes(row.nbytes)} of a storage of {format_nbytes(group.nbytes)}"
            first_rows[variable] = f"{row.shape} {row.dtype}{part if row.nbytes < group.nbytes else ''}"
    lines = []
    for variable, counts in kinds.items():
        what = f"{variable[1]}, {' and '.join(counted(number, kind) for kind, number in counts.items())}"
        if num_shared[variable]:
            what += f" of its own, {num_shared[variable]:,} shared"
        if variable in first_rows:
            what = first_rows[variable]
        lines.append(Owner(variable[0], what, nbytes[variable]))
    return tuple(sorted(lines, key=lambda one: -one.nbytes))


def _first(ordered: list[Found]) -> Found:
    named = (one for one in ordered if one.kind in ("parameter", "buffer") and not one.is_result)
    return next((one for one in named if first_step(one.path) != one.path), ordered[0])


def _rows(ordered: list[Found]) -> tuple[CensusRow, ...]:
    first, rows = ordered[0], list[CensusRow]()
    for found in ordered:
        relation = ""
        if rows:
            try:
                relation = f"{first.name}: {Target(first.obj).compare(found.obj) or 'same storage'}"
            except Exception:
                relation = f"{first.name}: may overlap"
        rows.append(CensusRow(found.name, found.kind, *_facts(found), relation))
    return tuple(rows)


def _facts(found: Found) -> tuple[tuple[int, ...] | None, str, str, int]:
    """Return shape, dtype, device and bytes."""
    obj = found.obj
    try:
        if not is_tensor(obj):
            array = np.ndarray.view(obj, np.ndarray)
            return array.shape, str(array.dtype), "cpu", array.nbytes
        info = inspect(obj)
        return info.shape, name_of(info.dtype), str(info.device), info._nbytes_here if found.spans else 0
    except Exception:
        return None, type(obj).__name__, "", 0


def _limits(sizes: Iterable[int], max_rows: int) -> Iterator[int]:
    sizes, left = list(sizes), max_rows
    for i, size in enumerate(sizes):
        if left <= 0:
            return
        # A tensor with many names must not hide all others.
        others = len(sizes) - i - 1
        limit = min(size, max(left - others, min(left, MIN_ROWS_OF_GROUP)))
        left -= limit
        yield limit


def _matches(group: Group, patterns: tuple[str, ...]) -> bool:
    return any(
        # First literally: in a wildcard, [3] is one character.
        one.name == pattern or fnmatchcase(one.name, pattern) or one.name.startswith((f"{pattern}.", f"{pattern}["))
        for one in group.found
        for pattern in patterns
    )


def _owner_of(group: Group) -> str:
    named = [found for found in group.found if not found.is_result]
    if not named:
        return RESULTS[0]
    if any(found.kind in ("parameter", "buffer") for found in named):
        return "parameters and buffers"
    if all(found.kind == "grad" for found in named):
        return "gradients"
    for found in named:
        # An optimizer has a ``.state`` with tensors as keys.
        for key, holder in pairwise(steps_of(found.path)):
            if type(key) is tuple and is_tensor(key[0]) and holder == ".state":
                return "optimizer states"
    return "variables"


def _ordered(group: Group) -> list[Found]:
    named = {id(found.obj) for found in group.found if _is_own_name(found)}
    listed = [found for found in group.found if _is_own_name(found) or id(found.obj) not in named]

    def key(found: Found) -> Any:
        obj, nbytes = found.obj, 0
        with suppress(Exception):
            nbytes = Bare(obj).nbytes if is_tensor(obj) else obj.nbytes
        # An expanded tensor has more bytes than its storage.
        nbytes = min(nbytes, group.nbytes)
        return found.is_result, found.kind == "grad", -nbytes, _KIND_ORDER.get(found.kind, 1)

    return sorted(listed, key=key) if len(listed) > 1 else listed


def _is_own_name(found: Found) -> bool:
    """Return whether a name is more than history or the list of an optimizer."""
    return not found.is_result and ".param_groups[" not in found.name
