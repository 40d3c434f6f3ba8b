"""Records of plain fields, of which some pickles have millions: each is taken at once, and kept as a tuple.

A pattern tells the opcodes of one whole record, which `machine.py` would carry out one by one, with the same counts.
What a pickle may not ask for later is forgotten; if it does, it is carried out anew, opcode by opcode.
"""

from __future__ import annotations

import io
import re
from typing import Any, NamedTuple

from tensornp.models.pickles.called import reader_of
from tensornp.models.pickles.machine import OF_FIRST_ITEM, Machine
from tensornp.models.pickles.records import Global, Kind, Record
from tensornp.models.pickles.tensors import SIZE

_GET = rb"(?:h.|j.{4})"
_INT = rb"(?:K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))"
_TEXT = rb"\x8c(?:%s)\x94" % b"|".join(b"%s.{%d}" % (re.escape(bytes([n])), n) for n in range(1, 256))
_NUMBERS = rb"(?:\)|%b(?:\x85|%b(?:\x86|%b\x87))\x94|\(%b{4,99}t\x94)" % (_INT, _INT, _INT, _INT)
_SIZES = rb"%b%b\x85\x94R\x94" % (_GET, _NUMBERS)
_FIELD = rb"(%b)([N\x88\x89]|%b|%b|%b|%b)" % (_GET, _INT, _SIZES, _GET, _TEXT)
_RECORD = re.compile(rb"(%b)\)\x81\x94}\x94\(%b%b(?:%b(?:%b)?)?ub" % (_GET, *[_FIELD] * 4), re.DOTALL)
"""An instance without arguments, whose state has two to four fields: numbers, texts, sizes, what was there before."""
_INTS = re.compile(_INT, re.DOTALL)
_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
_GETS = {ord("h"): 2, ord("j"): 5}
"""The opcodes that ask for what was remembered, and how many bytes they take."""
_TEXT_CODE, _LONG, _SIGNED = 0x8C, 0x8A, b"J\x8a"
_SIZE = Global(*SIZE)
_FORGOTTEN = object()
"""Stands in the memo for what is not kept: the dictionary of a state, and the arguments of `torch.Size`."""
_MAX_KEPT, _MAX_KINDS = 2**16, 1000
"""Values and kinds that are kept by their opcodes, since they come again and again."""


class AskedAgainError(Exception):
    """A pickle asks for what was forgotten, or changes what is whole."""


class _Value(NamedTuple):
    """A value, what is remembered when it is made, and how many records and texts it takes."""

    value: Any
    memos: tuple[Any, ...] = ()
    num_records: int = 0
    num_texts: int = 0


class RecordMachine(Machine):
    """A machine that takes records at once; AskedAgainError where each opcode has to be carried out by itself."""

    def __init__(self, data: bytes | memoryview, stream: io.BytesIO, num_records: int, max_made: int | None) -> None:
        super().__init__(num_records, max_made)
        # Not the stream's own buffer, which would be a copy.
        self._data, self._stream = data, stream
        self._kinds: dict[tuple[bytes | None, ...], Kind | None] = {}
        self._values: dict[bytes, _Value | None] = {}

    def memoize(self, at: int) -> None:
        """Remember what lies on top, behind all that was before."""
        if at != len(self._memo):
            raise AskedAgainError
        super().memoize(at)

    def remembered(self, at: int) -> Any:
        """Return what was remembered by a number; KeyError where nothing was."""
        found = super().remembered(at)
        if found is _FORGOTTEN:
            raise AskedAgainError
        return found

    def _remembered_before(self, raw: bytes) -> Any:
        """Return what was remembered before a record that asks for it: what is remembered within one is not known."""
        if (at := _number(raw)) >= len(self._memo):
            raise AskedAgainError
        return self.remembered(at)

    def _changed(self) -> Any:
        if type(self.stack[-1]) is Record:
            raise AskedAgainError
        return super()._changed()

    def get(self, number: int, width: int) -> None:
        """Put what was remembered on the stack, or all records that begin with what asks for it, in `width` bytes."""
        begins = at = self._stream.tell() - width
        while (found := _RECORD.match(self._data, at)) is not None and self._take(found.groups()):
            at = found.end()
        if at > begins:
            self._stream.seek(at)
        else:
            self.stack.append(self.remembered(number))

    def _take(self, told: tuple[bytes | None, ...]) -> bool:
        """Put a record on the stack, if it is one whose class and names are known."""
        names = (told[0], *told[1::2])
        kind = self._kinds[names] if names in self._kinds else self._kind(names)
        if kind is None:
            return False
        made: list[Any] = [kind]
        memos: list[Any] = [None, _FORGOTTEN]
        num_records, num_made = 2, OF_FIRST_ITEM
        for raw in told[2 : 2 * len(kind.names) + 1 : 2]:
            assert raw is not None
            if raw[0] in _GETS and len(raw) in _GETS.values():
                made.append(self._remembered_before(raw))
                continue
            value = self._values[raw] if raw in self._values else self._value(raw)
            if value is None:
                return False
            made.append(value.value)
            if value.memos:
                memos += value.memos
                num_records, num_made = num_records + value.num_records, num_made + value.num_texts
        memos[0] = record = Record(made)
        self.count_many(num_records, num_made, len(memos))
        self.stack.append(record)
        self._memo += memos
        return True

    def _kind(self, asked: tuple[bytes | None, ...]) -> Kind | None:
        """Return which record begins by asking for these; None where it is none."""
        if len(self._kinds) >= _MAX_KINDS:
            return None
        func, *names = (self._remembered_before(raw) for raw in asked if raw is not None)
        is_told = type(func) is Global and all(type(name) is str for name in names)
        return self._kinds.setdefault(asked, Kind(func, tuple(names)) if is_told else None)

    def _value(self, raw: bytes) -> _Value | None:
        """Return what these opcodes make; None where they call another function than `torch.Size`."""
        if len(self._values) >= _MAX_KEPT:
            self._values.clear()
        width = _GETS.get(raw[0])
        if raw in _CONSTANTS:
            value = _Value(_CONSTANTS[raw])
        elif raw[0] == _TEXT_CODE:
            text = str(raw[2:-1], "utf-8", "surrogatepass")
            value = _Value(text, (text,), num_texts=1)
        elif width is None:
            value = _Value(_number(raw))
        else:
            func = self._remembered_before(raw[:width])
            if type(func) is not Global or func != _SIZE:
                return None
            self.called.setdefault(func, reader_of(func))
            sizes = tuple(map(_number, _INTS.findall(raw, width)))
            value = _Value(sizes, (*[_FORGOTTEN] * (1 + bool(sizes)), sizes), 2 + bool(sizes))
        self._values[raw] = value
        return value


def _number(raw: bytes) -> int:
    """Return the argument of an opcode: of those that have it behind how many bytes it takes, those are skipped."""
    return int.from_bytes(raw[2 if raw[0] == _LONG else 1 :], "little", signed=raw[0] in _SIGNED)
