"""What a pickle would build, without building it: nothing is imported, called or compared, whatever the pickle says.

Arguments are read by the standard library's own disassembler, and the opcodes carried out on a stack of plain values
and inert records: what would be a call is a `Call`, and what would be imported is a `Global`.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.core.lowlevel.legible import legible
from tensornp.errors import CheckpointError

MAX_NBYTES = 2**28
"""Bytes of a pickle that are read: without the values of tensors, which lie elsewhere."""
MAX_OPCODES = 20_000_000
MAX_LONG_BITS = 8 * 1024
FREE_RECORDS, NBYTES_PER_RECORD = 200_000, 4
"""Containers and calls that any pickle may make, and in how many bytes one more; memos, as many again.

Those that torch and others write take five bytes each, and more.
"""
_MAX_SAID = 300
_MAX_KEY_LENGTH = 16
_MAX_KEY_BITS = 61
"""Longer integers can be found that have one hash."""
_MAX_MEMO = 2**32
_NO_ITEMS: Mapping[Any, Any] = MappingProxyType({})
_SIMPLE = (str, int, float, bool, bytes, type(None))


class Global(NamedTuple):
    """What a pickle would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Persistent(NamedTuple):
    """What lies outside of the pickle: the storage of a tensor."""

    key: Any


class Call:
    """What would be called, with which arguments, and what would be put into the result."""

    __slots__ = ("appended", "args", "func", "is_new", "items", "state")

    def __init__(self, func: Any, args: Any) -> None:
        self.func, self.args = func, args
        self.state: Any = None
        # Whether a class is to make an instance, with these arguments: of those that have any, a tuple or a number.
        self.is_new = False
        # Made when the first one comes: of hundreds of thousands of calls, few have any.
        self.items: Mapping[Any, Any] = _NO_ITEMS
        self.appended: Sequence[Any] = ()


class Mark:
    """Where a group of values on the stack begins."""


class XRay(NamedTuple):
    """The root of what a pickle would build, all that it would import and has outside, and how many bytes it takes."""

    root: Any
    imports: tuple[Global, ...]
    nbytes: int
    persistent: tuple[Persistent, ...] = ()


def xray(data: bytes | memoryview) -> XRay:
    """Return what the pickle at the beginning of `data` would build.

    Raises
    ------
    CheckpointError
        If it is no pickle, is cut off, or larger than any that is met.
    """
    if len(data) > MAX_NBYTES:
        raise CheckpointError(f"a pickle of {len(data):,} bytes is not read; {MAX_NBYTES:,} are allowed")
    try:
        return _Machine().run(bytes(data))
    except CheckpointError:
        raise
    except RecursionError:
        raise CheckpointError("the pickle is nested too deeply") from None
    except Exception as error:
        said = legible(str(error)[:_MAX_SAID])
        raise CheckpointError(f"the pickle is not sound ({type(error).__name__}: {said})") from None


class _Machine:
    """A stack, a memo, and what each opcode does to them."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.imports: dict[Global, None] = {}
        self.persistent: list[Persistent] = []
        self.left = self.memos_left = FREE_RECORDS

    def run(self, data: bytes) -> XRay:
        stream, code = io.BytesIO(data), b""
        self.left = self.memos_left = FREE_RECORDS + len(data) // NBYTES_PER_RECORD
        for _ in range(MAX_OPCODES):
            code = stream.read(1)
            if code not in _BY_CODE:
                raise CheckpointError(_why_not(code))
            act, read = _BY_CODE[code]
            act(self, read(stream) if read is not None else None)
            if code == _STOP:
                (root,) = self.stack
                return XRay(root, tuple(self.imports), stream.tell(), tuple(self.persistent))
        raise CheckpointError(f"the pickle has more than {MAX_OPCODES:,} opcodes")

    def push_record(self, value: Any) -> None:
        """Put on the stack what takes more memory than the byte that asks for it."""
        self.count_record()
        self.stack.append(value)

    def count_record(self) -> None:
        """Count what takes such memory; CheckpointError where a small file would fill a large one."""
        self.left -= 1
        if self.left < 0:
            raise CheckpointError("the pickle has more containers than a checkpoint of its size")

    def count_memo(self) -> None:
        """Count what is remembered; errors as of `count_record`."""
        self.memos_left -= 1
        if self.memos_left < 0:
            raise CheckpointError("the pickle has more memos than a checkpoint of its size")

    def memoize(self, at: int) -> None:
        """Remember what lies on top."""
        if not 0 <= at < _MAX_MEMO:
            raise ValueError("a memo has no such number")
        self.count_memo()
        self.memo[at] = self.stack[-1]

    def to_mark(self) -> list[Any]:
        """Take what lies above the last mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is Mark:
                found = self.stack[i + 1 :]
                del self.stack[i:]
                return found
        raise ValueError("there is no mark")

    def found(self, module: Any, name: Any) -> None:
        """Put what would be imported on the stack."""
        if type(module) is not str or type(name) is not str:
            raise ValueError("an import has no name")
        wanted = Global(module, name)
        self.imports[wanted] = None
        self.push_record(wanted)

    def put_items(self, pairs: list[Any]) -> None:
        """Put keys and values into what lies on top."""
        items = self.stack[-1]
        if type(items) is Call:
            if items.items is _NO_ITEMS:
                items.items = {}
            items = items.items
        if type(items) is not dict:
            raise ValueError("items are put into what is no mapping")
        for i in range(0, len(pairs) - 1, 2):
            key = pairs[i]
            items[key if type(key) is str else _as_key(key, len(items))] = pairs[i + 1]

    def append(self, values: list[Any]) -> None:
        """Append values to what lies on top."""
        into = self.stack[-1]
        if type(into) is Call:
            if not into.appended:
                into.appended = []
            into = into.appended
        if type(into) is not list:
            raise ValueError("values are appended to what is no list")
        into.extend(values)


def _as_key(key: Any, number: int) -> Any:
    """Return what a dictionary can have as a key without asking anything for its hash; else a word for it."""
    if type(key) is Call:
        # Its hash is its identity.
        return key
    # The hash of a tuple is found anew each time.
    parts = key if type(key) is tuple and len(key) <= _MAX_KEY_LENGTH else (key,)
    return key if all(map(_is_plain_key, parts)) else f"<key {number}>"


def _is_plain_key(key: Any) -> bool:
    return type(key) in _SIMPLE and (type(key) is not int or key.bit_length() <= _MAX_KEY_BITS)


Act = Callable[[_Machine, Any], object]


def _push(machine: _Machine, arg: Any) -> None:
    if type(arg) is int and arg.bit_length() > MAX_LONG_BITS:
        raise CheckpointError(f"the pickle has an integer of {arg.bit_length():,} bits")
    machine.stack.append(bytes(arg) if type(arg) is bytearray else arg)


def _constant(value: Any) -> Act:
    return lambda machine, _: machine.stack.append(value)


def _new(kind: Callable[[], Any]) -> Act:
    return lambda machine, _: machine.push_record(kind())


def _tuple(count: int) -> Act:
    def act(machine: _Machine, _: Any) -> None:
        if len(machine.stack) < count:
            raise ValueError("the stack is empty")
        machine.count_record()
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return act


def _get(machine: _Machine, arg: Any) -> None:
    machine.stack.append(machine.memo[int(arg)])


def _put(machine: _Machine, arg: Any) -> None:
    machine.memoize(int(arg))


def _memoize(machine: _Machine, _: Any) -> None:
    machine.memoize(len(machine.memo))


def _dict_of_mark(machine: _Machine, _: Any) -> None:
    pairs = machine.to_mark()
    machine.push_record({})
    machine.put_items(pairs)


def _set_item(machine: _Machine, _: Any) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.put_items([key, value])


def _append_one(machine: _Machine, _: Any) -> None:
    value = machine.stack.pop()
    machine.append([value])


def _reduce(machine: _Machine, _: Any) -> None:
    args, func = machine.stack.pop(), machine.stack.pop()
    machine.push_record(Call(func, args))


def _new_object(machine: _Machine, _: Any) -> None:
    _reduce(machine, None)
    machine.stack[-1].is_new = True


def _persistent(machine: _Machine, key: Any) -> None:
    machine.persistent.append(Persistent(key))
    machine.push_record(machine.persistent[-1])


def _new_with_keywords(machine: _Machine, _: Any) -> None:
    keywords, args, func = (machine.stack.pop() for _ in range(3))
    call = Call(func, args)
    call.items = keywords if type(keywords) is dict else _NO_ITEMS
    machine.push_record(call)


def _object(machine: _Machine, _: Any) -> None:
    func, *args = machine.to_mark()
    machine.push_record(Call(func, tuple(args)))


def _instance(machine: _Machine, arg: Any) -> None:
    args = machine.to_mark()
    module, _, name = arg.partition(" ")
    machine.found(module, name)
    machine.push_record(Call(machine.stack.pop(), tuple(args)))


def _build(machine: _Machine, _: Any) -> None:
    state = machine.stack.pop()
    if type(machine.stack[-1]) is Call:
        machine.stack[-1].state = state


def _global(machine: _Machine, arg: Any) -> None:
    module, _, name = arg.partition(" ")
    machine.found(module, name)


def _global_of_stack(machine: _Machine, _: Any) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.found(module, name)


_PUSHED = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8"
).split()
_ACTS: dict[str, Act] = {
    **dict.fromkeys(_PUSHED, _push),
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "MARK": _constant(Mark),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": _new(list),
    "EMPTY_DICT": _new(dict),
    "EMPTY_SET": _new(list),
    "TUPLE": lambda machine, _: machine.push_record(tuple(machine.to_mark())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "LIST": lambda machine, _: machine.push_record(machine.to_mark()),
    "FROZENSET": lambda machine, _: machine.push_record(machine.to_mark()),
    "DICT": _dict_of_mark,
    "SETITEM": _set_item,
    "SETITEMS": lambda machine, _: machine.put_items(machine.to_mark()),
    "APPEND": _append_one,
    "APPENDS": lambda machine, _: machine.append(machine.to_mark()),
    "ADDITEMS": lambda machine, _: machine.append(machine.to_mark()),
    "GET": _get,
    "BINGET": _get,
    "LONG_BINGET": _get,
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": _memoize,
    "GLOBAL": _global,
    "STACK_GLOBAL": _global_of_stack,
    "REDUCE": _reduce,
    "NEWOBJ": _new_object,
    "NEWOBJ_EX": _new_with_keywords,
    "OBJ": _object,
    "INST": _instance,
    "BUILD": _build,
    "BINPERSID": lambda machine, _: _persistent(machine, machine.stack.pop()),
    "PERSID": _persistent,
    "POP": lambda machine, _: machine.stack.pop(),
    "POP_MARK": lambda machine, _: machine.to_mark(),
    "DUP": lambda machine, _: machine.stack.append(machine.stack[-1]),
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "STOP": lambda machine, _: None,
}
"""Opcodes of extension registries and of buffers outside are left out: no checkpoint has them."""
_STOP = b"."
_BY_CODE: dict[bytes, tuple[Act, Callable[[io.BytesIO], Any] | None]] = {
    one.code.encode("latin-1"): (_ACTS[one.name], one.arg.reader if one.arg is not None else None)
    for one in pickletools.opcodes
    if one.name in _ACTS
}
"""What each byte does, and what reads its argument."""


def _why_not(code: bytes) -> str:
    if not code:
        return "the pickle is cut off"
    name = next((one.name for one in pickletools.opcodes if one.code.encode("latin-1") == code), repr(code))
    return f"the pickle has an opcode that checkpoints do not have: {name}"
