"""`Source`: the values of a weight, in memory, in a file, or made on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.memory.extents import Extent as Bytes
from tensornp.errors import NoDataError
from tensornp.models.files.source_file import Extent
from tensornp.models.names.quoted import MAX_TOLD, cut, shown_name

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats


class Called(NamedTuple):
    """The name of a weight and the expression that reaches it, for messages."""

    name: str
    code: str

    @property
    def shown(self) -> str:
        """The name as a sentence shows it."""
        return shown_name(self.name)

    def without_values(self, why: str) -> NoDataError:
        """Return the error of a weight that has no values."""
        return NoDataError(f"{self.shown} has no values to read: {cut(why, MAX_TOLD)}")


class Again(NamedTuple):
    """How to look a weight up again: an expression, and a function of its value."""

    expression: str
    make: Callable[[Any], Any]


class Source:
    """The values of a weight: in memory, in a file, or made by a module; this class alone has none.

    Only `WeightEntry`, which has the facts of a weight, uses most of this.
    """

    __slots__ = ()

    @property
    def location(self) -> str:
        """A device, the path of a file or of a folder of files, or nothing."""
        return ""

    def plan(self, called: Called, index: Any) -> Any:
        """Return the plan of `to_numpy`."""
        raise called.without_values("there are none")

    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index` as an array."""
        raise called.without_values("there are none")

    def values(self, called: Called) -> Any:
        """Return a tensor or a reader of the values."""
        raise called.without_values("there are none")

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of all values."""
        raise called.without_values("there are none")

    @property
    def dtype_of_values(self) -> str:
        """The dtype of the values, if it is not that of the weight."""
        return ""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The bytes in files; empty in memory."""
        return ()

    @property
    def fills_extents(self) -> bool:
        """Whether `extents` hold the elements and nothing else."""
        return False

    @property
    def itemsize(self) -> int:
        """Bytes of an element in a file, 0 if elements have no own bytes."""
        return 0

    @property
    def lies(self) -> Bytes | None:
        """The extent of the elements in a file, if each byte belongs to one of them."""
        return None

    @property
    def held(self) -> Any:
        """The tensor or array in memory, None for files and made tensors."""
        return None

    def again(self, called: Called, kind: str) -> Again | None:
        """Return how to look the weight up again; None if no memory is held."""
        return None

    @property
    def identity(self) -> object:
        """A key that is equal for names of the same elements."""
        return id(self)

    @property
    def key(self) -> object:
        """A key that is equal for the same values, to resume a scan."""
        return self.identity

    @property
    def requires_grad(self) -> bool | None:
        """Whether backward computes a gradient for it, None outside of graphs."""
        return None

    @property
    def codes(self) -> Source | None:
        """The source of the stored codes of a quantized weight."""
        return None


class NoSource(Source):
    """A weight without values: registered as None, or missing in its file.

    `consists_of` are the weights in the file that its class computes the values from.
    """

    __slots__ = ("consists_of", "identity", "location")
    location: str
    identity: object

    def __init__(self, location: str = "", *, identity: object = None, consists_of: tuple[Any, ...] = ()) -> None:
        self.location, self.consists_of = location, consists_of
        self.identity = identity or id(self)
