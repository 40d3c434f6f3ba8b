"""One look at everything that is watched, and a line for each thing that has changed since the last look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.arrays import extent_of_array
from tensornp.core.memory.changes import Snapshot
from tensornp.core.namespace.lookup import NotLookedAtError, look_up
from tensornp.core.namespace.search import search
from tensornp.core.summary.report import ReportLine
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import is_of_collective
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.paths import Kind, Path, expression_of
from tensornp.core.values.compare.snapshots import snapshot_with_values, what_changed
from tensornp.errors import BadRequestError
from tensornp.render.tensor.changes import change_parts

MAX_TENSORS = 2000
"""Tensors and arrays that one watched name may hold."""
MAX_SECONDS = 1.0


class WatchPass:
    """One look at all that is watched; each object is read once, and the budgets hold for all together.

    Attributes
    ----------
    snapshots : dict
        What there is now, by expression and name.
    partial : set of str
        Expressions that hold more than was looked at.
    left_out : dict
        Names of what was not read, or not all of it, by `Snapshot.left_out`: of each object the first.
    """

    def __init__(self, namespace: Mapping[str, Any], max_copy_nbytes: int, max_read_nbytes: int) -> None:
        self._namespace = namespace
        self._left_to_copy, self._left_to_read = max_copy_nbytes, max_read_nbytes
        # The objects are held meanwhile, so that none takes the identity of another.
        self._seen: dict[int, tuple[Any, Snapshot]] = {}
        self._told: set[tuple[int, tuple[str, ...]]] = set()
        self._first_names: dict[int, str] = {}
        self.snapshots: dict[str, dict[str, Snapshot]] = {}
        self.partial: set[str] = set()
        self.left_out: dict[str, dict[str, None]] = {"sampled": {}, "unread": {}, "pending": {}}

    def begin(self, expression: str) -> None:
        """Look at what an expression names for the first time.

        Raises BadRequestError if that is no tensor, no array, and nothing that holds one.
        """
        objects = self._at(expression, {})
        if not objects:
            raise BadRequestError(f"{expression} holds no tensor or array; name one that does")
        obj = objects.get(expression)
        if is_array(obj) and np.ndarray.dtype.__get__(obj).hasobject:
            # It holds addresses, which tell nothing of what lies there.
            raise BadRequestError(f"{expression} is an array of objects, which is not looked into; name its items")

    def keep(self, expression: str, snapshots: dict[str, Snapshot], *, is_partial: bool) -> None:
        """Take what is known of an expression for granted, at the price of reading it."""
        for snapshot in {id(snapshot): snapshot for snapshot in snapshots.values()}.values():
            self._left_to_read -= snapshot.nbytes_read
            self._left_to_copy -= snapshot.nbytes_copied
        self.snapshots[expression] = snapshots
        self.partial |= {expression} if is_partial else set()
        self._note(snapshots)

    def report(self, expression: str, before: dict[str, Snapshot], *, was_partial: bool) -> list[ReportLine]:
        """Return a line for each change below one watched name that no other has told, and look at it anew."""
        try:
            objects = self._at(expression, before)
        except NotLookedAtError:
            self.keep(expression, before, is_partial=was_partial)
            return []
        except BadRequestError:
            return [ReportLine(expression, ("it is gone, and is no longer watched",), come="gone")]
        after, lines = self.snapshots[expression], []
        # A search that came less far than the last one has not found that anything is gone.
        is_partial = was_partial or expression in self.partial
        for name, obj in objects.items():
            if name not in before:
                lines += [] if is_partial else self._once(obj, ReportLine(name, ("new",), come="new"))
            elif not before[name].is_in_place_of(obj):
                lines += self._once(obj, ReportLine(name, (f"another object now, {_described(obj)}",)))
            else:
                change = what_changed(before[name], after[name])
                if change is not None:
                    is_count = _is_count(after[name])
                    told = ReportLine(name, change_parts(change), change.size, is_count=is_count, alarm=change.alarm)
                    lines += self._once(obj, told)
                if before[name].left_out != "pending":
                    # What was left out last time could not be compared this time.
                    self._note({name: before[name]})
        gone = [name for name in before if name not in objects]
        if is_partial:
            after.update({name: before[name] for name in gone})
        else:
            lines += [ReportLine(name, ("gone",), come="gone") for name in gone]
        return lines

    def _once(self, obj: Any, line: ReportLine) -> list[ReportLine]:
        """Return the line, or nothing if the same was told of the same object by another name."""
        key = id(obj), line.parts
        is_told = key in self._told
        self._told.add(key)
        return [] if is_told else [line]

    def _at(self, expression: str, before: dict[str, Snapshot]) -> dict[str, Any]:
        """Return the tensors and arrays that an expression names, having looked at each; `before` is the last look.

        Raises BadRequestError if there is nothing of that name.
        """
        objects = self._objects(expression)
        after = {name: self._snapshot_of(obj, before.get(name)) for name, obj in objects.items()}
        self.snapshots[expression] = after
        self._note(after)
        return objects

    def _snapshot_of(self, obj: Any, before: Snapshot | None) -> Snapshot:
        """Return what an object is now; the values of what has changed are copied, while the budget lasts."""
        if id(obj) not in self._seen:
            last = before if before is not None and before.is_in_place_of(obj) else None
            snapshot = snapshot_with_values(obj, self._left_to_copy, last, self._left_to_read)
            self._seen[id(obj)] = obj, snapshot
            self._left_to_copy -= snapshot.nbytes_copied
            self._left_to_read -= snapshot.nbytes_read
        return self._seen[id(obj)][1]

    def _objects(self, expression: str) -> dict[str, Any]:
        """Return the tensors and arrays that an expression names, by name: itself, or all that it holds."""
        value = look_up(expression, self._namespace)
        if is_tensor(value) or is_array(value):
            return {expression: value}
        places: list[tuple[Any, Any]] = []
        keys: dict[int, Any] = {}
        collectives: set[int] = set()

        def visit(obj: Any, kind: Kind, path: Path) -> bool:
            if kind == "parameter":
                keys.setdefault(id(obj), path)
            if is_tensor(obj) and is_of_collective(obj):
                collectives.add(id(path))
            # What a collective writes is told of what stands for it, once it has arrived.
            is_inside = id(path[0]) in collectives
            if (is_tensor(obj) or is_array(obj)) and kind != "grad" and not is_inside:
                places.append((obj, path))
            return len(places) >= MAX_TENSORS

        if not search({expression: value}, MAX_SECONDS, visit).is_complete:
            self.partial.add(expression)
        found: dict[str, Any] = {}
        for obj, path in places:
            # Members of a set, and keys that are tensors, have one name for all of them.
            name = expression_of(path, keys)
            found[name if name not in found else f"{name} ({len(found)})"] = obj
        return found

    def _note(self, snapshots: dict[str, Snapshot]) -> None:
        for name, snapshot in snapshots.items():
            if snapshot.left_out:
                first_name = self._first_names.setdefault(snapshot.object_id, name)
                self.left_out[snapshot.left_out][first_name] = None


def _is_count(snapshot: Snapshot) -> bool:
    """Return whether it is one integer, as the steps of a batch norm: by one more it is not largely changed."""
    info = snapshot.info
    return info is not None and info.numel == 1 and name_of(info.dtype).removeprefix("u").startswith("int")


def _described(obj: Any) -> str:
    if is_array(obj):
        extent = extent_of_array(obj)
        return f"{extent.shape} {extent.meaning}"
    info = inspect(obj)
    return f"{info.shape} {name_of(info.dtype)}".replace("-1", "?")
