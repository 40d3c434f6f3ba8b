"""One weight of an explorer: what is known of it for nothing, and its values on request."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.weight import Weight
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import NoDataError
from tensornp.models.names.quoted import MAX_TOLD, cut, shown_name

Array = np.ndarray[Any, Any]
COMPUTED = "computed"
"""The kind of a weight that is computed from others when it is asked for, and of which nothing is stored."""

_MAX_INNER = 6
"""Tensors of which another consists that are told."""


class Extent(NamedTuple):
    """Bytes of a file."""

    path: str
    offset: int
    nbytes: int


class Related(NamedTuple):
    """Another weight that lies in the same bytes: the relation is one of those of `tnp.aliases`."""

    relation: str
    name: str


class WeightEntry(Weight):
    """A tensor with a name, of which nothing is read before it is asked for.

    Attributes
    ----------
    name : str
        Its keys, joined by dots.
    kind : str
        "parameter", "buffer", "tensor", "array", "state": what belongs to another weight, as scales do, or "computed":
        what a module computes from others at each access, which no total counts, and a scan reads only if it is named.
    shape : tuple of int or None
        None where it is not known yet.
    dtype : str
        As torch calls it; what torch does not know bears the name that the file gives it.
    nbytes : int
        Bytes that its elements take, in memory or in the file.
    location : str
        A device, the path of its file, or that of a folder in which each weight has a file.
    code : str
        The expression that reaches it; empty where no name does.
    tied_to : tuple of str
        The other names of the same object.
    related : tuple of Related
        Other weights of which bytes are shared: ("same elements", name), ("overlapping", name).
    requires_grad : bool or None
        None of what a file holds.
    note : str
        What is unusual, in a few words.
    problem : str
        Why it has no values; empty where it has.
    wanted_imports : tuple of str
        What a pickle would have imported for it.
    saved_as : tuple of str or None
        What else it is called in state dicts, of an optimizer's state the parameter's name first and its number last;
        None of what no state dict has: a buffer that is not persistent, a tensor that is not registered.
    """

    __slots__ = (
        "code", "dtype", "kind", "name", "nbytes", "note", "problem", "related", "saved_as", "shape", "tied_to",
        "wanted_imports",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, shape: tuple[int, ...] | None, dtype: str, nbytes: int, code: str) -> None:
        self.name, self.kind, self.shape, self.dtype, self.nbytes, self.code = name, kind, shape, dtype, nbytes, code
        self.note = self.problem = ""
        self.tied_to: tuple[str, ...] = ()
        self.related: tuple[Related, ...] = ()
        self.wanted_imports: tuple[str, ...] = ()
        self.saved_as: tuple[str, ...] | None = ()

    @property
    def numel(self) -> int:
        """How many elements it has; 0 where its shape is not known."""
        return math.prod(self.shape) if self.shape is not None else 0

    @property
    def numel_elsewhere(self) -> int:
        """How many of its elements this rank does not hold, where it is sharded."""
        return 0

    @property
    def nbytes_elsewhere(self) -> int:
        """The bytes of these; `nbytes` are those of the others."""
        return 0

    @property
    def num_parameters(self) -> int | None:
        """How many weights it has: other than `numel` where several are packed into one element, None if not told."""
        return self.numel

    @property
    def dtype_of_values(self) -> str:
        """The dtype by which values are counted; another one than `dtype` where codes are stored."""
        return self.dtype

    @property
    def is_nothing(self) -> bool:
        """Whether a module has registered it as None."""
        return False

    @property
    def is_pending(self) -> bool:
        """Whether its values are yet to be made: it is lazy, or an optimizer has no state of it."""
        return False

    @property
    def identity(self) -> object:
        """What is equal for names of one thing."""
        return id(self)

    @property
    @abstractmethod
    def location(self) -> str: ...

    @property
    @abstractmethod
    def requires_grad(self) -> bool | None: ...

    @property
    @abstractmethod
    def extents(self) -> tuple[Extent, ...]:
        """Where its bytes lie in files; empty in memory."""

    @abstractmethod
    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index` as an array; only those are read.

        Parameters
        ----------
        index : optional
            What basic indexing takes: integers, slices, ``...`` and None.
        copy, writeable, dtype : optional
            As of `to_numpy`. The values of a file are always new memory, as are those that a module makes.

        Raises
        ------
        NoDataError
            If there are no values, for the reason that `problem` tells.
        CopyRequiredError
            For ``copy=False`` where the values are those of a file, or made for the request.
        ChangedFileError
            If the file has changed since it was listed.
        BadRequestError
            For another index, or one out of bounds.
        """

    @abstractmethod
    def values(self) -> Any:
        """Return what its values are read from: a tensor, or what reads them some at a time; errors as of `to_numpy`.

        Whatever reads a tensor block by block takes it: `tnp.stats`, `tnp.locate`, `tnp.compare`.
        """

    @abstractmethod
    def stats(self) -> TensorStats:
        """Return the statistics of all values, which are read block by block; errors as of `to_numpy`.

        Of what is spread over ranks they are those of this rank's part, as of `tnp.stats`.
        """

    def check_readable(self) -> None:
        """Raise NoDataError if there are no values."""
        if self.problem:
            raise NoDataError(f"{shown_name(self.name)} has no values to read: {cut(self.problem, MAX_TOLD)}")

    def __repr__(self) -> str:
        said = [self.kind, shape_text(self.shape, self.kind) or "shape not known yet", self.dtype, self.location]
        said += list(filter(None, [self.note, self.problem]))
        return f"<{shown_name(self.name)}: {', '.join(cut(one, MAX_TOLD) for one in said)}>"


def inner_text(class_name: str, inner: Sequence[tuple[str, str, tuple[int, ...] | None]]) -> str:
    """Return a class with the names, dtypes and shapes of tensors in it: ``Int8Tensor: qdata int8 (128, 128), …``."""
    parts = [f"{name} {dtype} {shape_text(shape, '')}".rstrip() for name, dtype, shape in inner[:_MAX_INNER]]
    more = ["…"] if len(inner) > _MAX_INNER else []
    return f"{class_name}: {', '.join(parts + more)}" if parts else class_name


def shape_text(shape: tuple[int, ...] | None, kind: str) -> str:
    """Return what is said of a shape; nothing of one that is not known, unless it will be."""
    if shape is not None:
        return cut(str(shape), MAX_TOLD)
    return "computed when asked" if kind == COMPUTED else ""
