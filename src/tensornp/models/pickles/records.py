"""What a pickle would build, as inert records: nothing in them can be called, and none compares anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

NO_ITEMS: Mapping[Any, Any] = MappingProxyType({})


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
        self.items: Mapping[Any, Any] = NO_ITEMS
        self.appended: Sequence[Any] = ()


class Mark:
    """Where a group of values on the stack begins."""


class NotBuilt(NamedTuple):
    """What stands in a value for what is not plain: a tensor, or what the file would import, with what it has."""

    said: str
    parts: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"<{': '.join([self.said, *map(repr, self.parts)])}>"


class XRay(NamedTuple):
    """The root of what a pickle would build, all that it would import and has outside, and how many bytes it takes.

    `called` are those imports that it would call.
    """

    root: Any
    imports: tuple[Global, ...]
    nbytes: int
    persistent: tuple[Persistent, ...] = ()
    called: frozenset[Global] = frozenset()
