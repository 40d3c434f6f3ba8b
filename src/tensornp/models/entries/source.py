"""Sources of values: in memory, in files, or made on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensornp.errors import CopyRequiredError


class Source:
    """The values of a weight; this class alone has none, and its methods are never called.

    `extents` are bytes in files, and `itemsize` is 0 unless elements have bytes of their own there. `held` is the
    tensor or array in memory, `codes` the source of stored codes, and `values` returns a tensor or a reader.
    """

    __slots__ = ()
    location: Any = ""
    dtype_of_values: Any = ""
    extents: Any = ()
    itemsize: Any = 0
    held: Any = None
    requires_grad: Any = None
    codes: Any = None
    plan: Any
    to_numpy: Any
    values: Any
    stats: Any

    @property
    def identity(self) -> object:
        """A key that is equal for names of the same elements."""
        return id(self)


class NoSource(Source):
    """No values."""

    __slots__ = ("identity", "location")
    identity: object

    def __init__(self, location: str = "", *, identity: object = None) -> None:
        self.location, self.identity = location, identity or id(self)


class Requested(Source):
    """Values of a weight that `get` returns at each request, so that no row holds them.

    A weight that a module computes has a `holder`, the expression of the module, and `again`, which returns the weight
    for the module; its values are always copied.
    """

    __slots__ = ("again", "get", "holder", "identity", "location", "requires_grad")
    identity: object

    def __init__(
        self, get: Callable[[], Any], location: str, requires_grad: bool | None, *, identity: object = None,
        holder: str = "", again: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.get, self.location, self.requires_grad = get, location, requires_grad
        self.identity, self.holder, self.again = identity or id(self), holder, again

    def _found(self) -> Any:
        found = self.get()
        found._check_readable()
        return found._source

    def plan(self, index: Any) -> Any:
        return self._found().plan(index, copy=True) if self.again else self._found().plan(index)

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        if self.again and copy is False:
            raise CopyRequiredError("the values are computed at each request; leave copy=False out")
        return self._found().to_numpy(index, copy=True if self.again else copy, writeable=writeable, dtype=dtype)

    def values(self) -> Any:
        return self._found().values()

    def stats(self) -> Any:
        return self._found().stats()
