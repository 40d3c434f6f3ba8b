"""`Source`: the values of a weight, in memory, in a file, or made on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensornp.errors import CopyRequiredError, NoDataError

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats


class Source:
    """The values of a weight: in memory, in a file, or made by a module; this class alone has none.

    Attributes
    ----------
    location : str
        A device, the path of a file or of a folder of files, or nothing.
    dtype_of_values : str
        The dtype of the values, if it is not that of the weight.
    extents : tuple of Extent
        The bytes in files.
    fills_extents : bool
        Whether `extents` hold the elements and nothing else.
    itemsize : int
        Bytes of an element in a file, 0 if elements have no own bytes.
    lies : Extent of memory or None
        The extent of the elements in a file, if each byte belongs to one of them.
    held : object
        The tensor or array in memory.
    requires_grad : bool or None
        Whether backward computes a gradient for it, None outside of graphs.
    codes : Source or None
        The source of the stored codes of a quantized weight.
    """

    __slots__ = ()
    location: Any = ""
    dtype_of_values: Any = ""
    extents: Any = ()
    fills_extents: Any = False
    itemsize: Any = 0
    lies: Any = None
    held: Any = None
    requires_grad: Any = None
    codes: Any = None

    def plan(self, index: Any) -> Any:
        """Return the plan of `to_numpy`."""
        raise NoDataError("there are no values")

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index` as an array."""
        raise NoDataError("there are no values")

    def values(self) -> Any:
        """Return a tensor or a reader of the values."""
        raise NoDataError("there are no values")

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        raise NoDataError("there are no values")

    @property
    def identity(self) -> object:
        """A key that is equal for names of the same elements."""
        return id(self)

    @property
    def key(self) -> object:
        """A key that is equal for the same values, to resume a scan."""
        return self.identity


class NoSource(Source):
    """A weight without values: registered as None, or missing in its file.

    `consists_of` are the weights in the file that its class computes the values from.
    """

    __slots__ = ("consists_of", "identity", "location")
    identity: object

    def __init__(self, location: str = "", *, identity: object = None, consists_of: tuple[Any, ...] = ()) -> None:
        self.location, self.consists_of = location, consists_of
        self.identity = identity or id(self)


class Requested(Source):
    """Values of a weight that `get` returns anew for each request, so that no row holds them.

    `get` raises NoDataError if there is none. A weight that a module computes has a `holder`, the expression of the
    module, and `again`, which returns the weight for the module; its values are always copied.
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
        """Return the plan of `to_numpy`."""
        return self._found().plan(index, copy=True) if self.again else self._found().plan(index)

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index`; a copy if they are computed."""
        if self.again and copy is False:
            raise CopyRequiredError("the values are computed at each request; leave copy=False out")
        return self._found().to_numpy(index, copy=True if self.again else copy, writeable=writeable, dtype=dtype)

    def values(self) -> Any:
        """Return the tensor."""
        return self._found().values()

    def stats(self) -> TensorStats:
        """Return the statistics of the tensor."""
        found: TensorStats = self._found().stats()
        return found
