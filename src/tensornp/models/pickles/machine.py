"""The stack and the memo on which a pickle is carried out, of plain values and inert records."""

from __future__ import annotations

from typing import Any

from tensornp.errors import CheckpointError
from tensornp.models.pickles.called import (
    MAKES_TENSOR,
    MAPPING_CLASSES,
    ReadBy,
    given_to_mapping,
    keys_and_values,
    reader_of,
)
from tensornp.models.pickles.plain_calls import plain_of
from tensornp.models.pickles.records import NO_ITEMS, Call, Global, Mark, Persistent

_MAX_MEMO = 2**32
_MAX_KEY_LENGTH = 16
"""Parts of a tuple that is a key; tuples in it may have a quarter. Python hashes deep ones without end."""
MAX_MADE = 6_000_000
"""Containers, calls and texts of any pickle, some 100 bytes each; of 300,000 tensors there are three million."""
MEMOS_PER_MADE = 10
"""How many memos that come one after another take as much as one of these."""
OF_FIRST_ITEM = 2
_NBYTES_PER_RECORD = 4


class UnsoundError(Exception):
    """What is wrong with a pickle, in the words of the sentence's end."""


class Machine:
    """A stack, a memo, what would be imported and lies outside, and how much more may be made.

    `num_records` is how many containers and calls there may be for the size of the pickle, and how many memos;
    `max_made` how many of all that takes memory, `MAX_MADE` if it is not told.
    """

    def __init__(self, num_records: int, max_made: int | None = None) -> None:
        self.stack: list[Any] = []
        # Those that come one after another, as most do, in a list: a dictionary takes ten times as much of each.
        self._memo: list[Any] = []
        self._memo_beyond: dict[int, Any] = {}
        self.imports: dict[Global, None] = {}
        # With what tells what each has read of its arguments.
        self.called: dict[Global, ReadBy | None] = {}
        self.persistent: list[Persistent] = []
        # By identity: what would be changed after a call has read it.
        self.read: dict[int, Any] = {}
        self.left = self.memos_left = num_records
        self._num_made, self._max_made = 0, max_made or MAX_MADE

    def count(self, num: int = 1) -> None:
        """Count what takes memory; CheckpointError where it is more than any checkpoint needs."""
        self._num_made += num
        if self._num_made > self._max_made:
            raise CheckpointError(f"the pickle has more than {self._max_made:,} containers and texts")

    def push_record(self, value: Any) -> None:
        """Put on the stack what takes more memory than the byte that asks for it."""
        self.count_record()
        self.stack.append(value)

    def count_record(self) -> None:
        """Count what takes such memory; CheckpointError where a small file would fill a large one."""
        self._num_made += 1
        self.left -= 1
        if self.left < 0 or self._num_made > self._max_made:
            self.count(0)
            raise CheckpointError("the pickle has more containers than a checkpoint of its size")

    def memoize(self, at: int) -> None:
        """Remember what lies on top; errors as of `count_record`."""
        if not 0 <= at < _MAX_MEMO:
            raise UnsoundError("a memo has no such number")
        # Every third opcode comes here: a call more is felt.
        self.memos_left -= 1
        memo = self._memo
        if self.memos_left < 0 or len(memo) > MEMOS_PER_MADE * self._max_made:
            self._check_memos()
        if at == len(memo):
            memo.append(self.stack[-1])
            if self._memo_beyond:
                self._memo_beyond.pop(at, None)
        elif at < len(memo):
            memo[at] = self.stack[-1]
        else:
            self.count()
            self._memo_beyond[at] = self.stack[-1]

    def _check_memos(self) -> None:
        if self.memos_left < 0 or len(self._memo) > MEMOS_PER_MADE * self._max_made:
            raise CheckpointError("the pickle has more memos than a checkpoint of its size")

    @property
    def num_memos(self) -> int:
        """How many are remembered."""
        return len(self._memo) + len(self._memo_beyond)

    def remembered(self, at: int) -> Any:
        """Return what was remembered by a number; KeyError where nothing was."""
        return self._memo[at] if 0 <= at < len(self._memo) else self._memo_beyond[at]

    def to_mark(self) -> list[Any]:
        """Take what lies above the last mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is Mark:
                found = self.stack[i + 1 :]
                del self.stack[i:]
                return found
        raise UnsoundError("there is no mark")

    def found(self, module: Any, name: Any) -> None:
        """Put what would be imported on the stack."""
        if type(module) is not str or type(name) is not str:
            raise UnsoundError("an import has no name")
        wanted = Global(module, name)
        self.imports[wanted] = None
        self.push_record(wanted)

    def call(self, func: Any, args: Any) -> None:
        """Put what a function would return on the stack."""
        value = plain_of(func, args) if type(func) is Global else None
        if isinstance(value, (str, bytes)):
            # What is made of a text is as long: of one that is remembered, it could be made again and again.
            self.left -= len(value) // _NBYTES_PER_RECORD
        self.push_record(Call(func, args) if value is None else value)
        if type(func) is not Global:
            return
        try:
            read_by = self.called[func]
        except KeyError:
            read_by = self.called[func] = reader_of(func)
        if value is not None or not args or type(args) is not tuple:
            return
        if read_by is not None:
            for one in read_by(args):
                self.read[id(one)] = one
        elif func in MAPPING_CLASSES:
            self._take_items(func, args)

    def _take_items(self, func: Global, args: tuple[Any, ...]) -> None:
        """Put into the mapping on top what its class is given, if that is told."""
        given = given_to_mapping(func, args)
        self.count(len(given or ()))
        pairs = keys_and_values(given) if given is not None else None
        if pairs is not None:
            self.stack[-1].args = ()
            self.put_items(pairs)

    def put_items(self, pairs: list[Any]) -> None:
        """Put keys and values into what lies on top."""
        items = self._changed()
        if type(items) is Call:
            if type(items.func) is Global and items.func in MAKES_TENSOR:
                raise UnsoundError("it writes into a tensor")
            if items.items is NO_ITEMS:
                items.items = {}
            items = items.items
        if type(items) is not dict:
            raise UnsoundError("items are put into what is no mapping")
        if not items:
            # A dictionary takes thrice as much from its first item on.
            self.count(OF_FIRST_ITEM)
        for i in range(0, len(pairs) - 1, 2):
            key = pairs[i] if _is_short(pairs[i]) else Call(Global("builtins", "tuple"), pairs[i])
            try:
                items[key] = pairs[i + 1]
            except TypeError:
                raise UnsoundError("a dictionary has a key that cannot be one") from None

    def append(self, values: list[Any]) -> None:
        """Append values to what lies on top."""
        into = self._changed()
        if type(into) is Call:
            if not into.appended:
                into.appended = []
            into = into.appended
        if type(into) is not list:
            raise UnsoundError("values are appended to what is no list")
        into.extend(values)

    def set_state(self, state: Any) -> None:
        """Set the state of the object on top."""
        made = self._changed()
        if type(made) is Call:
            if made.state is not None:
                raise UnsoundError("an object is given its state twice")
            made.state = state

    def _changed(self) -> Any:
        """Return what lies on top, which is about to be changed."""
        found = self.stack[-1]
        if self.read and id(found) in self.read:
            raise UnsoundError("it changes what a call has read before")
        return found


def _is_short(key: Any, max_length: int = _MAX_KEY_LENGTH) -> bool:
    """Return whether a key is not a long or deep tuple."""
    if not isinstance(key, tuple):
        return True
    return len(key) <= max_length and all(_is_short(one, max_length // 4) for one in key)
