"""The stack and the memo on which a pickle is carried out, of plain values and inert records."""

from __future__ import annotations

from typing import Any

from tensornp.errors import CheckpointError
from tensornp.models.pickles.records import NO_ITEMS, Call, Global, Mark, Persistent

_MAX_KEY_LENGTH = 16
_MAX_KEY_BITS = 61
"""Longer integers can be found that have one hash."""
_MAX_MEMO = 2**32
MAX_MADE = 6_000_000
"""Containers, calls, texts and memos of any pickle, some 100 bytes each; of 300,000 tensors there are five million."""
_OF_FIRST_ITEM = 2
_SIMPLE = (str, int, float, bool, bytes, type(None))


class UnsoundError(Exception):
    """What is wrong with a pickle, in the words of the sentence's end."""


class Machine:
    """A stack, a memo, what would be imported and lies outside, and how much more may be made.

    `num_records` is how many containers and calls there may be, and how many memos.
    """

    def __init__(self, num_records: int) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.imports: dict[Global, None] = {}
        self.called: set[Global] = set()
        self.persistent: list[Persistent] = []
        self.left = self.memos_left = num_records
        self._num_made = 0

    def count(self, num: int = 1) -> None:
        """Count what takes memory; CheckpointError where it is more than any checkpoint needs."""
        self._num_made += num
        if self._num_made > MAX_MADE:
            raise CheckpointError(f"the pickle has more than {MAX_MADE:,} containers, texts and memos")

    def push_record(self, value: Any) -> None:
        """Put on the stack what takes more memory than the byte that asks for it."""
        self.count_record()
        self.stack.append(value)

    def count_record(self) -> None:
        """Count what takes such memory; CheckpointError where a small file would fill a large one."""
        self._num_made += 1
        self.left -= 1
        if self.left < 0 or self._num_made > MAX_MADE:
            self.count(0)
            raise CheckpointError("the pickle has more containers than a checkpoint of its size")

    def memoize(self, at: int) -> None:
        """Remember what lies on top; errors as of `count_record`."""
        if not 0 <= at < _MAX_MEMO:
            raise UnsoundError("a memo has no such number")
        # Every third opcode comes here: a call more is felt.
        self._num_made += 1
        self.memos_left -= 1
        if self.memos_left < 0 or self._num_made > MAX_MADE:
            self.count(0)
            raise CheckpointError("the pickle has more memos than a checkpoint of its size")
        self.memo[at] = self.stack[-1]

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
        if type(func) is Global:
            self.called.add(func)
        self.push_record(Call(func, args))

    def put_items(self, pairs: list[Any]) -> None:
        """Put keys and values into what lies on top."""
        items = self.stack[-1]
        if type(items) is Call:
            if items.items is NO_ITEMS:
                items.items = {}
            items = items.items
        if type(items) is not dict:
            raise UnsoundError("items are put into what is no mapping")
        if not items:
            # A dictionary takes thrice as much from its first item on.
            self.count(_OF_FIRST_ITEM)
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
            raise UnsoundError("values are appended to what is no list")
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
