"""What each opcode of a pickle does, where it is only looked through; arguments are read by the standard library."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any

from tensornp.errors import CheckpointError
from tensornp.models.pickles.machine import Machine
from tensornp.models.pickles.records import NO_ITEMS, Call, Global, Mark, Persistent

MAX_LONG_BITS = 8 * 1024

Act = Callable[[Any, Any], object]


def _push(machine: Machine, arg: Any) -> None:
    if type(arg) is int and arg.bit_length() > MAX_LONG_BITS:
        raise CheckpointError(f"the pickle has an integer of {arg.bit_length():,} bits")
    if type(arg) in (str, bytes, bytearray):
        machine.count()
    machine.stack.append(bytes(arg) if type(arg) is bytearray else arg)


def _constant(value: Any) -> Act:
    return lambda machine, _: machine.stack.append(value)


def _new(kind: Callable[[], Any]) -> Act:
    return lambda machine, _: machine.push_record(kind())


def _tuple(count: int) -> Act:
    def act(machine: Machine, _: Any) -> None:
        if len(machine.stack) < count:
            raise IndexError
        machine.count_record()
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return act


def _get(machine: Machine, arg: Any) -> None:
    machine.stack.append(machine.remembered(int(arg)))


def _put(machine: Machine, arg: Any) -> None:
    machine.memoize(int(arg))


def _memoize(machine: Machine, _: Any) -> None:
    machine.memoize(machine.num_memos)


def _dict_of_mark(machine: Machine, _: Any) -> None:
    pairs = machine.to_mark()
    machine.push_record({})
    machine.put_items(pairs)


def _set_item(machine: Machine, _: Any) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.put_items([key, value])


def _append_one(machine: Machine, _: Any) -> None:
    value = machine.stack.pop()
    machine.append([value])


def _reduce(machine: Machine, _: Any) -> None:
    args, func = machine.stack.pop(), machine.stack.pop()
    machine.call(func, args)


def _new_object(machine: Machine, _: Any) -> None:
    args, func = machine.stack.pop(), machine.stack.pop()
    machine.push_record(Call(func, args))
    machine.stack[-1].is_new = True


def _persistent(machine: Machine, key: Any) -> None:
    machine.persistent.append(Persistent(key))
    machine.push_record(machine.persistent[-1])


def _new_with_keywords(machine: Machine, _: Any) -> None:
    keywords, args, func = (machine.stack.pop() for _ in range(3))
    call = Call(func, args)
    call.items = keywords if type(keywords) is dict else NO_ITEMS
    machine.push_record(call)


def _object(machine: Machine, _: Any) -> None:
    found = machine.to_mark()
    machine.call(found[0], tuple(found[1:]))


def _instance(machine: Machine, arg: Any) -> None:
    args = machine.to_mark()
    module, _, name = arg.partition(" ")
    machine.found(module, name)
    machine.call(machine.stack.pop(), tuple(args))


def _build(machine: Machine, _: Any) -> None:
    state = machine.stack.pop()
    machine.set_state(state)


def _global(machine: Machine, arg: Any) -> None:
    module, _, name = arg.partition(" ")
    machine.found(module, name)


def _global_of_stack(machine: Machine, _: Any) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.found(module, name)


_SET, _FROZENSET = (Global("builtins", name) for name in ("set", "frozenset"))
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
    "EMPTY_SET": lambda machine, _: machine.push_record(Call(_SET, ())),
    "TUPLE": lambda machine, _: machine.push_record(tuple(machine.to_mark())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "LIST": lambda machine, _: machine.push_record(machine.to_mark()),
    "FROZENSET": lambda machine, _: machine.push_record(Call(_FROZENSET, (machine.to_mark(),))),
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
STOP, BINGET, LONG_BINGET = b".", b"h", b"j"
Acts = dict[bytes, tuple[Act, Callable[[io.BytesIO], Any] | None]]
BY_CODE: Acts = {
    one.code.encode("latin-1"): (_ACTS[one.name], one.arg.reader if one.arg is not None else None)
    for one in pickletools.opcodes
    if one.name in _ACTS
}
"""What each byte does, and what reads its argument."""


def why_not(code: bytes) -> str:
    """Return why a pickle is not seen through in which this byte stands for an opcode."""
    if not code:
        return "the pickle is cut off"
    name = next((one.name for one in pickletools.opcodes if one.code.encode("latin-1") == code), repr(code))
    return f"the pickle has an opcode that checkpoints do not have: {name}"
