"""Read a pickle and import or call nothing that it names.

`read_pickle` returns plain containers. A known function gives its value at once; any other call gives an `Opaque`.
A crafted pickle of `MAX_NBYTES` may take gigabytes or minutes; nothing else bounds it.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from tensornp.errors import CheckpointError

MAX_NBYTES = 2**26
"""Bytes of a pickle that callers read; 300,000 tensors take 26 MB."""
_MAX_INT_NBYTES = 1024
_MAX_KEY_LENGTH = 16
"""Parts of a tuple that is a key."""
_NO_ITEMS: Mapping[Any, Any] = MappingProxyType({})
_UNPICKLER: Any = pickle._Unpickler


class Import(NamedTuple):
    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


Maker = Callable[..., Any]


class Function(NamedTuple):
    """Stand-in for an import; `make` gives the value of a call, None if the function is unknown."""

    what: Import
    make: Maker | None = None

    def __hash__(self) -> int:
        return hash(self.what)


class Opaque:
    """Stand-in for an object that was not made."""

    __slots__ = ("appended", "args", "items", "state", "what")

    def __init__(self, what: Import | None, args: tuple[Any, ...] = ()) -> None:
        self.what, self.args = what, args
        self.state: Any = None
        # A container takes memory, and most of a million objects have neither.
        self.items: Any = _NO_ITEMS
        self.appended: Any = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items = self.items or {}
        self.items[key] = value

    def append(self, value: Any) -> None:
        self.appended = self.appended or []
        self.appended.append(value)

    add = append


class PickledSet(list[Any]):
    """The elements of a set, which are not hashed."""

    add = list.append


class Pickled(NamedTuple):
    """Contents of a pickle: its root, its imports and those that it calls."""

    root: Any
    nbytes: int
    imports: tuple[Import, ...]
    called: frozenset[Import]
    persistent: tuple[Any, ...]


def read_pickle(
    data: bytes,
    make: Callable[[Import], Maker | None] = lambda _: None,
    persistent: Maker = lambda _: Opaque(None),
) -> Pickled:
    """Return the contents of the pickle at the beginning of `data`.

    `make` returns a function for each known import, and `persistent` an object for each persistent id.
    """
    stream = io.BytesIO(data)
    reader = _Reader(stream, make, persistent)
    try:
        root = reader.load()
    except RecursionError:
        raise CheckpointError("its pickle is nested too deeply") from None
    except Exception:
        # Any error of any type: the pickle decides which operation gets which operands.
        raise CheckpointError(f"its pickle is damaged or cut off before byte {stream.tell():,}") from None
    functions = reader.functions
    return Pickled(root, stream.tell(), (*functions,), frozenset(reader.called), (*reader.persistent,))


class _Reader(_UNPICKLER):  # type: ignore[misc]
    """The unpickler of the standard library without its imports, calls and changes of objects.

    Its methods are private. If one ever goes, copy them, as torch did for `weights_only`.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(_UNPICKLER.dispatch)

    def __init__(self, stream: io.BytesIO, make: Callable[[Import], Maker | None], persistent: Maker) -> None:
        super().__init__(stream, encoding="latin-1")
        self.read, self.readline = stream.read, stream.readline
        self.functions: dict[Import, Function] = {}
        self.called: set[Import] = set()
        self.persistent: list[Any] = []
        self._make, self._persistent = make, persistent

    def load(self) -> Any:
        self.metastack: list[Any] = []
        self.stack: list[Any] = []
        self.append = self.stack.append
        dispatch = self.dispatch
        for code in iter(partial(self.read, 1), pickle.STOP):
            dispatch[code[0]](self)
        (root,) = self.stack
        return root

    def find_class(self, module: str, name: str) -> Function:
        what = Import(module, name)
        if what not in self.functions:
            self.functions[what] = Function(what, self._make(what))
        return self.functions[what]

    def get_extension(self, code: int) -> None:
        # No checkpoint uses the registry of `copyreg`.
        raise pickle.UnpicklingError

    def persistent_load(self, pid: Any) -> Any:
        self.persistent.append(self._persistent(pid))
        return self.persistent[-1]

    def call(self, func: Any, args: Any) -> Any:
        """Return the value of a known call, or an `Opaque`."""
        if type(func) not in (Function, Opaque) or type(args) is not tuple:
            raise pickle.UnpicklingError
        if type(func) is Opaque:
            return Opaque(None, (func, args))
        self.called.add(func.what)
        if func.make is not None:
            try:
                return func.make(*args)
            except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
                pass
        return Opaque(func.what, args)

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.append(self.call(self.stack.pop(), args))

    def load_newobj_ex(self) -> None:
        keywords, args = self.stack.pop(), self.stack.pop()
        made = self.call(self.stack.pop(), args)
        if type(made) is Opaque and type(keywords) is dict:
            made.items = keywords
        self.append(made)

    def _instantiate(self, func: Any, args: Any) -> None:
        self.append(self.call(func, tuple(args)))

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) is Opaque:
            made.state = state
        elif type(made) not in (dict, list, tuple, PickledSet):
            raise pickle.UnpicklingError

    def load_setitems(self) -> None:
        items, into = self.pop_mark(), self.stack[-1]
        for key, value in zip(items[::2], items[1::2], strict=True):
            into[_short(key)] = value

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][_short(key)] = value

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append(mapping_of(zip(items[::2], items[1::2], strict=True)))

    def load_empty_set(self) -> None:
        self.append(PickledSet())

    def load_frozenset(self) -> None:
        # `append` is another one after `pop_mark`.
        made = PickledSet(self.pop_mark())
        self.append(made)

    def load_bytearray8(self) -> None:
        (nbytes,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(nbytes))

    def load_long4(self) -> None:
        (nbytes,) = struct.unpack("<i", self.read(4))
        if nbytes > _MAX_INT_NBYTES:
            raise pickle.UnpicklingError
        self.append(pickle.decode_long(self.read(nbytes)))

    def load_frame(self) -> None:
        self.read(8)


_CHANGED = ("REDUCE NEWOBJ_EX BUILD SETITEMS SETITEM DICT EMPTY_SET FROZENSET BYTEARRAY8 LONG4 FRAME").split()
_Reader.dispatch |= {getattr(pickle, name)[0]: getattr(_Reader, f"load_{name.lower()}") for name in _CHANGED}
_Reader.dispatch[pickle.NEWOBJ[0]] = _Reader.load_reduce


def mapping_of(given: Any = ()) -> dict[Any, Any]:
    """Return a dictionary of a mapping or of pairs."""
    return dict(given) if type(given) is dict else {_short(key): value for key, value in given}


def _short(key: Any) -> Any:
    """Return a key, or a stand-in for a deep or long tuple, which Python would hash recursively in C."""
    is_short = type(key) is not tuple or (len(key) <= _MAX_KEY_LENGTH and tuple not in map(type, key))
    return key if is_short else Opaque(Import("builtins", "tuple"))
