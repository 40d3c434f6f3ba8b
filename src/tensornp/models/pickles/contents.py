"""What lies in what a pickle would build: its tensors and plain values, and by which keys each is reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from tensornp.core.tensor.paths import is_plain_value, key_text
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.described import ARRAYS, DESCRIBED, arrays_left_out, described, objects_of, text_of_torch
from tensornp.models.pickles.rebuilt import held_by_tensor, tensor_of
from tensornp.models.pickles.records import Call, Global, Persistent
from tensornp.models.pickles.tensors import BY_POSITION, MAPPINGS, SETS, SIZE, WRAPPERS, PickledTensor, name_of

MAX_ENTRIES = 1_000_000
"""Values that are listed."""
MAX_AGAIN = 20_000
"""Values that are listed once more, since their container is reached in several ways; there may be endlessly many."""
MAX_DEPTH = 100
_MAX_KEY = 1000
"""Characters of a key that a name has."""
_TABLES = ("_parameters", "_buffers", "_modules")
_MAX_SAID = 5
MAX_OTHERS = 1000
_CONTAINERS = frozenset([SIZE, *SETS, *WRAPPERS, *MAPPINGS])


class OfSet(int):
    """The key of an element of a set: a number by which nothing reaches it."""

    __slots__ = ()


class PickledValue(NamedTuple):
    """Something plain beside the tensors, or a `NotBuilt` that stands for what is not."""

    path: tuple[Any, ...]
    value: Any


class Unlisted:
    """What was left out: tensors, by the reason; storages and arrays; what is too much, or reached in too many ways.

    `others` are the first of the objects that hold nothing that is listed, by their paths, with their classes.
    """

    def __init__(self) -> None:
        self.tensors: Counter[str] = Counter()
        self.num_storages = self.num_arrays = 0
        self.others: list[tuple[tuple[Any, ...], str]] = []
        self.is_cut = self.is_repeated = False

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        said = self.tensors.most_common(_MAX_SAID)
        for why, num in said:
            yield f"{num:,} tensors {why} are not listed" if num > 1 else f"a tensor {why} is not listed"
        if left := sum(self.tensors.values()) - sum(num for _, num in said):
            yield f"{left:,} more tensors are not listed, since they lie in other objects"
        if self.num_storages:
            yield f"storages that stand for themselves are not listed; it has {self.num_storages:,}"
        if self.num_arrays:
            yield arrays_left_out(self.num_arrays, "it")
        if self.is_cut:
            yield f"it has more than {MAX_ENTRIES:,} values, and the others are not listed"


class _Level(NamedTuple):
    """A container whose children are gone through: why they are not listed, and whether they have been before."""

    path: tuple[Any, ...]
    children: Iterator[tuple[Any, Any, str]]
    value: Any
    hidden: str
    is_again: bool


def values_of(root: Any, unlisted: Unlisted | None = None) -> Iterator[PickledTensor | PickledValue]:
    """Yield the tensors, and the plain values beside them, depth first; modules by the names of their parameters.

    What it leaves out, it tells `unlisted`.
    """
    walk = _Walk(root, unlisted if unlisted is not None else Unlisted())
    for num, one in enumerate(walk.found()):
        if num >= MAX_ENTRIES:
            walk.left.is_cut = True
            return
        yield one


class _Walk:
    """Goes through containers depth first, without recursion; `levels` are those that one stands in."""

    def __init__(self, root: Any, left: Unlisted) -> None:
        self.left = left
        self.levels = [_Level((), iter([(_NO_KEY, root, "")]), None, "", False)]
        self.num_again = 0
        # Containers and tensors by identity: those met, and those that one stands in.
        self.met: set[int] = set()
        self.above: set[int] = set()

    def found(self) -> Iterator[PickledTensor | PickledValue]:
        """Yield what is listed."""
        while self.levels:
            level = self.levels[-1]
            key, value, why = next(level.children, (_NO_KEY, _END, ""))
            is_over = level.is_again and self.num_again >= MAX_AGAIN
            self.left.is_repeated |= is_over
            if value is _END or is_over:
                self.above.discard(id(level.value))
                self.levels.pop()
                continue
            one = self._one(level, key, value, level.hidden or why)
            if one is not None:
                yield one

    def _one(self, level: _Level, key: Any, value: Any, hidden: str) -> PickledTensor | PickledValue | None:
        """Return a value if it is listed, and enter a container."""
        path = (*level.path, key) if key is not _NO_KEY and not hidden else level.path
        if is_plain_value(value):
            self.num_again += level.is_again
            return None if hidden else PickledValue(path, value)
        if (text := text_of_torch(value)) is not None:
            self.num_again += level.is_again
            return None if hidden else PickledValue(path, text)
        if not _may_hold(value):
            self.left.num_storages += type(value) is Persistent
            self._note(path, value, hidden)
            return None
        is_again = level.is_again or id(value) in self.met
        if id(value) in self.above or (is_again and (hidden or self.num_again >= MAX_AGAIN)):
            self.left.is_repeated |= not hidden and id(value) not in self.above
            return None
        self.num_again += is_again
        self.left.num_arrays += isinstance(value, Call) and not is_again and name_of(value.func) in ARRAYS
        self.met.add(id(value))
        tensor = tensor_of(path, value) if isinstance(value, Call) else None
        if tensor is None:
            said = described(value)
            if said is not None and type(value) is tuple:
                # Looking at all of its numbers took as long as listing them.
                self.num_again += len(value) if is_again else 0
                return None if hidden else PickledValue(path, said)
            if said is None:
                self._note(path, value, hidden)
            self.above.add(id(value))
            hidden = hidden or (f"nested more than {MAX_DEPTH} deep" if len(path) >= MAX_DEPTH else "")
            self.levels.append(_Level(path, _children(value), value, hidden, is_again))
            return PickledValue(path, said) if said is not None and not hidden else None
        elif hidden:
            self.left.tensors[hidden] += 1
            return None
        if not is_again:
            why = "in the attribute {} of others".format
            held = ((_NO_KEY, one, why(shown_name(name))) for name, one in held_by_tensor(value))
            self.levels.append(_Level(path, held, None, "", is_again))
        return tensor

    def _note(self, path: tuple[Any, ...], value: Any, hidden: str) -> None:
        """Take an object of which nothing is listed: a call that is given all, or what would be imported."""
        func = value.func if type(value) is Call else value
        is_alone = type(value) is not Call or (value.state is None and not value.items and not value.appended)
        is_object = type(func) is Global and is_alone and func not in _CONTAINERS and func.module != BY_POSITION
        if is_object and not hidden and len(self.left.others) < MAX_OTHERS:
            self.left.others.append((path, str(func)))


_END, _NO_KEY = object(), object()


def _may_hold(value: Any) -> bool:
    """Return whether something can be in it; the empty tuple is one object wherever it stands."""
    return isinstance(value, Call) or (type(value) in (dict, list, tuple) and bool(value))


def _children(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield the keys and the values of a container, and why a value is not listed; the tables of a module are one."""
    if not isinstance(value, Call):
        yield from _listed(_items_of(value) if isinstance(value, dict) else enumerate(value))
        return
    if isinstance(value.state, dict) and "_parameters" in value.state:
        yield from _of_module(value.state)
        return
    module, name = name_of(value.func)
    if (module, name) in DESCRIBED:
        yield from _of_described(value)
        return
    args = value.args if type(value.args) is tuple else (value.args,)
    as_key = OfSet if (module, name) in SETS else int
    found = chain(_items_of(value), ((as_key(i), child) for i, child in enumerate(value.appended)))
    is_sequence = as_key is OfSet or module == BY_POSITION or (module, name) == SIZE
    if is_sequence and args and type(args[0]) in (list, tuple, dict):
        yield from _listed((as_key(i), child) for i, child in enumerate(args[0]))
    elif args and (module, name) in WRAPPERS:
        yield from _listed([(_NO_KEY, args[0])])
    elif value.is_new and (module, name) in MAPPINGS:
        # It is made empty, whatever it is given.
        pass
    elif value.is_new:
        # Of a class that is a tuple, the fields, whose names only the class knows.
        yield from _listed(enumerate(args))
    else:
        for one in args:
            yield _NO_KEY, one, f"given to {shown_name(f'{module}.{name}') if module else 'a call'}"
    yield from _listed(found)
    if isinstance(value.state, Call):
        yield _NO_KEY, value.state, ""
    elif value.state is not None:
        is_alone = not value.items and not value.appended
        state = _items_of(value.state) if isinstance(value.state, dict) else ()
        state = enumerate(value.state) if type(value.state) in (list, tuple) else state
        why = "" if is_alone else "among the attributes of a container"
        yield from ((key, child, why) for key, child in state)


def _of_module(state: dict[Any, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yield the parameters, buffers and children of a module, and the tensors that it has not registered."""
    for name in _TABLES:
        yield from _listed(_items_of(state.get(name)))
    for key, value in _items_of(state):
        if key in _TABLES or is_plain_value(value):
            continue
        is_tensor = isinstance(value, Call) and tensor_of((), value) is not None
        yield key, value, "" if is_tensor else "in other attributes of modules"


def _of_described(value: Call) -> Iterator[tuple[Any, Any, str]]:
    """Yield what lies in an array of objects, and what is hidden in the arguments and the state of any such call."""
    is_array = name_of(value.func) in ARRAYS
    yield from _listed(enumerate(objects_of(value) or ()))
    why = "in NumPy arrays" if is_array else f"given to {shown_name('.'.join(name_of(value.func)))}"
    yield from ((_NO_KEY, one, why) for one in (value.args, value.state, value.items, value.appended))


def _listed(pairs: Any) -> Iterator[tuple[Any, Any, str]]:
    return ((key, value, "") for key, value in pairs)


def _items_of(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a mapping, with a word for a key that would be made by a call."""
    items = table if isinstance(table, dict) else table.items if isinstance(table, Call) else {}
    return ((f"<key {i}>" if type(key) is Call else key, value) for i, (key, value) in enumerate(items.items()))


def as_container(value: Any) -> Mapping[Any, Any] | list[Any] | tuple[Any, ...] | None:
    """Return the mapping or the list that a value would be; None for any other one."""
    if isinstance(value, Call):
        return value.items if name_of(value.func) in MAPPINGS else None
    return value if type(value) in (dict, list, tuple) else None


def shown_key(key: Any) -> str:
    """Return a key as a part of a name."""
    if type(key) is tuple:
        parts = [shown_key(one) if type(one) in (tuple, Global, Call) else key_text(one) for one in key]
        return f"({', '.join(parts)}{',' if len(key) == 1 else ''})"
    if type(key) in (str, Global):
        return str(key)
    if type(key) is Call:
        return "<key>"
    return key_text(int(key) if type(key) is OfSet else key)


def dotted(path: tuple[Any, ...]) -> str:
    """Return the keys joined by dots, the longest of them cut: one could be repeated in each of a million names."""
    return ".".join(text if len(text) <= _MAX_KEY else f"{text[:_MAX_KEY]}…" for text in map(shown_key, path))
