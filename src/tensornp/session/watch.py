"""Report the changes that each cell makes to watched tensors and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tensornp.render.collections.report import Report, ReportLine

if TYPE_CHECKING:
    from tensornp.core.memory.changes import Snapshot
    from tensornp.core.summary.options import DisplayOptions

MAX_TENSORS = 2000
"""Tensors and arrays that one watched name may hold."""
MAX_SECONDS = 1.0
MAX_COPY_NBYTES = 2**28
"""Bytes of copies that are kept to compare values with."""
Look = dict[str, "Snapshot"]
"""Snapshots of one watched expression by name."""


class Watch:
    """Watches tensors and arrays by name, and keeps none of them alive."""

    def __init__(self, session: Any, options: Callable[[], DisplayOptions]) -> None:
        self._session = session
        self._options = options
        self._looks: dict[str, Look] = {}

    @property
    def names(self) -> list[str]:
        """The watched expressions."""
        return list(self._looks)

    def add(self, expressions: list[str]) -> int:
        """Watch these expressions from now on; return the number of tensors and arrays.

        BadRequestError if one names no tensor, array, module or container of at most 2,000 of them.
        """
        from tensornp.core.lowlevel.modes import outside_modes

        kept = [look for name, look in self._looks.items() if name not in expressions]
        with outside_modes():
            reader = self._reader(kept)
            added = {expression: reader.first(expression) for expression in dict.fromkeys(expressions)}
        self._looks = {**self._looks, **added}
        return _num_objects(added.values())

    def remove(self, expressions: list[str]) -> list[str]:
        """Stop watching some or all expressions; return the ones that were watched."""
        gone = [name for name in (expressions or self.names) if name in self._looks]
        self._looks = {name: look for name, look in self._looks.items() if name not in gone}
        return gone

    def report(self, cell: str) -> Report | None:
        """Return the changes since the last report, if any."""
        from tensornp.core.lowlevel.modes import outside_modes

        found: list[ReportLine] = []
        looks: dict[str, Look] = {}
        with outside_modes():
            reader = self._reader()
            for expression, before in self._looks.items():
                look, lines = reader.compare(expression, before)
                found += lines
                if look is not None:
                    looks[expression] = look
        num_watched, self._looks = _num_objects(self._looks.values()), looks
        # A name below two watched names is reported once.
        return Report(f"{cell} changed", tuple(dict.fromkeys(found)), num_watched) if found else None

    def _reader(self, kept: Iterable[Look] = ()) -> _Reader:
        nbytes = sum(snapshot.nbytes_copied for look in kept for snapshot in look.values())
        return _Reader(self._session.names, self._options().max_read_nbytes, MAX_COPY_NBYTES - nbytes)


class _Reader:
    """Reads each watched object once."""

    def __init__(self, namespace: Mapping[str, Any], max_read_nbytes: int, left_to_copy: int) -> None:
        self._namespace = namespace
        self._max_read_nbytes, self._left_to_copy = max_read_nbytes, left_to_copy
        # The objects are held meanwhile, so that none takes the identity of another.
        self._seen: dict[int, tuple[Any, Snapshot]] = {}
        self._reported: set[tuple[int, tuple[str, ...]]] = set()

    def first(self, expression: str) -> Look:
        """Read an expression for the first time; raise BadRequestError without tensors."""
        import numpy as np

        from tensornp.core.lowlevel.attributes import is_array
        from tensornp.errors import BadRequestError

        objects = self._objects(expression)
        obj = objects.get(expression)
        if not objects:
            raise BadRequestError(f"{expression} holds no tensor or array; name one that does")
        if is_array(obj) and np.ndarray.dtype.__get__(obj).hasobject:
            # It holds addresses, which do not change when an object does.
            raise BadRequestError(f"{expression} is an array of objects, which cannot be watched; name its items")
        return {name: self._snapshot_of(obj, None) for name, obj in objects.items()}

    def compare(self, expression: str, before: Look) -> tuple[Look | None, list[ReportLine]]:
        """Read an expression again; return its look, None if gone, and the changes."""
        from tensornp.core.namespace.lookup import NotLookedAtError
        from tensornp.errors import BadRequestError

        try:
            objects = self._objects(expression)
        except NotLookedAtError:
            return before, []
        except BadRequestError:
            return None, [ReportLine(expression, ("it is gone, and is no longer watched",), come="gone")]
        after = {name: self._snapshot_of(obj, before.get(name)) for name, obj in objects.items()}
        lines: list[ReportLine] = []
        for name, obj in objects.items():
            line = _line(name, obj, before.get(name), after[name])
            # Another name of the object may have the same line.
            if line is not None and (id(obj), line.parts) not in self._reported:
                self._reported.add((id(obj), line.parts))
                lines.append(line)
        return after, lines + [ReportLine(name, ("gone",), come="gone") for name in before if name not in objects]

    def _snapshot_of(self, obj: Any, before: Snapshot | None) -> Snapshot:
        from tensornp.core.values.compare.snapshots import snapshot_with_values

        if id(obj) not in self._seen:
            last = before if before is not None and before.object_id == id(obj) else None
            snapshot = snapshot_with_values(obj, self._left_to_copy, last, self._max_read_nbytes)
            self._seen[id(obj)] = obj, snapshot
            self._left_to_copy -= snapshot.nbytes_copied
        return self._seen[id(obj)][1]

    def _objects(self, expression: str) -> dict[str, Any]:
        from tensornp.core.lowlevel.attributes import is_array, is_tensor
        from tensornp.core.namespace.lookup import NotLookedAtError, look_up
        from tensornp.core.namespace.search import Search
        from tensornp.core.tensor.paths import Kind, Path

        value = look_up(expression, self._namespace)
        if is_tensor(value) or is_array(value):
            return {expression: value}
        places: list[tuple[Any, Any]] = []

        def visit(obj: Any, kind: Kind, path: Path) -> None:
            if (is_tensor(obj) or is_array(obj)) and kind != "grad":
                places.append((obj, path))

        search = Search({expression: value}, MAX_SECONDS, visit)
        if search.stopped or len(places) > MAX_TENSORS:
            raise NotLookedAtError(f"{expression} holds more than can be watched; name a part of it")
        return {search.name(path): obj for obj, path in places}


def _line(name: str, obj: Any, before: Snapshot | None, after: Snapshot) -> ReportLine | None:
    from tensornp.core.tensor.dtypes import name_of
    from tensornp.core.values.compare.snapshots import what_changed
    from tensornp.core.values.stored import described
    from tensornp.render.tensor.badges import change_parts

    if before is None:
        return ReportLine(name, ("new",), come="new")
    if before.object_id != id(obj):
        now = described(obj)
        return ReportLine(name, (f"another object now, {now.shape} {now.dtype}",))
    change = what_changed(before, after)
    if change is None:
        return None
    # One integer is a count, such as the steps of a batch norm.
    info = after.info
    is_count = info is not None and info.numel == 1 and name_of(info.dtype).removeprefix("u").startswith("int")
    return ReportLine(name, change_parts(change), change.size, is_count=is_count, alarm=change.alarm)


def _num_objects(looks: Iterable[Look]) -> int:
    return len({snapshot.object_id for look in looks for snapshot in look.values()})
