"""`Source`: where the values of a weight come from; it knows no name, and is told by which one they are spoken of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tensornp.core.memory.extents import Extent as Bytes
from tensornp.errors import NoDataError
from tensornp.models.files.source_file import Extent
from tensornp.models.names.quoted import MAX_TOLD, cut, shown_name

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats


class Called(NamedTuple):
    """By what a weight is spoken of: its name, and the expression that reaches it, or nothing."""

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
    """How a weight is had again: the expression of what has it, and what makes its entry of that; None if it cannot."""

    expression: str
    make: Callable[[Any], Any]


class Source(ABC):
    """Where the values of a weight come from: memory, a file, or a module that makes them.

    What a weight says of itself stands in its `WeightEntry`, which alone asks most of this.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def location(self) -> str:
        """A device, the path of a file, or that of a folder in which each weight has a file; or nothing."""

    @abstractmethod
    def plan(self, called: Called, index: Any) -> Any:
        """Return what `to_numpy` would do, or read."""

    @abstractmethod
    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return the values at `index` as an array."""

    @abstractmethod
    def values(self, called: Called) -> Any:
        """Return what the values are read from."""

    @abstractmethod
    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of all values."""

    @property
    def dtype_of_values(self) -> str:
        """The dtype by which values are counted, where it is another one than that of the weight; else nothing."""
        return ""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where the bytes lie in files; empty in memory."""
        return ()

    @property
    def fills_extents(self) -> bool:
        """Whether the bytes of `extents` are those of its elements: nothing is packed, and nothing lies besides."""
        return False

    @property
    def itemsize(self) -> int:
        """Bytes of an element in a file, where it is told which byte is whose; else 0."""
        return 0

    @property
    def lies(self) -> Bytes | None:
        """Where the elements lie in a file, where it is told which byte is whose; else None."""
        return None

    @property
    def held(self) -> Any:
        """The tensor or the array that is held; None of what is in a file, or made when it is asked for."""
        return None

    def again(self, called: Called, kind: str) -> Again | None:
        """Return how a weight of that kind is had again by one who does not hold it; None where nothing is held."""
        return None

    @property
    def identity(self) -> object:
        """What is equal for names of one thing."""
        return id(self)

    @property
    def key(self) -> object:
        """What is equal for the same values: by it an earlier scan is gone on with."""
        return self.identity

    @property
    def requires_grad(self) -> bool | None:
        """Whether backward adds up a gradient for it; None of what is in no graph."""
        return None

    @property
    def codes(self) -> Source | None:
        """The codes as they are stored, where the values are what these mean."""
        return None


class NoSource(Source):
    """What has no values: it is registered as None, or a file lists it and does not have it.

    `consists_of` are the weights that lie in the file in its place, where its class computes the values from them.
    """

    __slots__ = ("_identity", "_location", "consists_of")

    def __init__(self, location: str = "", *, identity: object = None, consists_of: tuple[Any, ...] = ()) -> None:
        self._location, self._identity = location, identity
        self.consists_of = consists_of

    @property
    def location(self) -> str:
        """The file that should have it, the device of a parameter without state, or nothing."""
        return self._location

    @property
    def identity(self) -> object:
        """The object of a pickle, or itself."""
        return self._identity or id(self)

    def to_numpy(self, called: Called, index: Any, **_: Any) -> NoReturn:
        """Raise NoDataError."""
        raise called.without_values("there are none")

    def plan(self, called: Called, index: Any) -> NoReturn:
        """Raise NoDataError."""
        self.to_numpy(called, index)

    def values(self, called: Called) -> NoReturn:
        """Raise NoDataError."""
        self.to_numpy(called, ...)

    def stats(self, called: Called) -> TensorStats:
        """Raise NoDataError."""
        self.to_numpy(called, ...)
