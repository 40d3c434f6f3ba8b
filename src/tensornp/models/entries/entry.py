"""Describe one weight of an explorer, and read its values on request."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.lowlevel.attributes import Weight
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.tensor.shards import check_shard
from tensornp.errors import NoDataError
from tensornp.models.files.source_file import Extent
from tensornp.models.names.quoted import MAX_TOLD, cut, shown_name

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

COMPUTED = "computed"
"""The kind of a weight that is computed from others when it is asked for, and of which nothing is stored."""
IN_PARTS = "this rank holds only a part of it"
META = "meta"


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
    is_part: Any = False

    @property
    def identity(self) -> object:
        """A key that is equal for names of the same elements."""
        return id(self)

    def stats(self) -> TensorStats:
        from tensornp.core.values.stats.compute import scan

        # Rows and columns of a part have other numbers than those of the whole.
        return scan(self.values(), in_depth=not self.is_part)


class NoSource(Source):
    """No values."""

    __slots__ = ("identity", "location")
    identity: object

    def __init__(self, location: str = "", *, identity: object = None) -> None:
        self.location, self.identity = location, identity or id(self)


class Packed(NamedTuple):
    """Codes that are read and never counted, and how many weights they are, if that is known."""

    num_parameters: int | None


# Not frozen: the benchmark row "200,000 tensors in a file" would take half as long again.
@dataclass(slots=True, eq=False, repr=False)
class WeightEntry(Weight):
    """A tensor with a name; its values are read on request.

    Attributes
    ----------
    name : str
        Its keys, joined by dots.
    kind : str
        "parameter", "buffer", "tensor", "array", "state" (of another weight, as scales are), or "computed" by a
        module at each access, which no total counts.
    shape : tuple of int or None
        None where it is not known yet.
    dtype : str
        As torch calls it, or as the file does if torch has no such dtype.
    nbytes : int
        Bytes that its elements take, in memory or in the file; of a sharded one, on this rank.
    code : str
        The expression that reaches it; empty where no name does.
    note : str
        A few words on unusual facts.
    problem : str
        Why it has no values; empty where it has.
    tied_to : tuple of str
        The other names of the same elements.
    wanted_imports : tuple of str
        The imports that the pickle asks for.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    _source: Source
    code: str
    note: str = ""
    problem: str = ""
    tied_to: tuple[str, ...] = ()
    wanted_imports: tuple[str, ...] = ()
    _saved_as: tuple[str, ...] | None = ()
    """Other names in state dicts: of a state, the parameter's first and its number last. None if it is not saved."""
    _packed: Packed | None = None
    _several_numel: int | None = None
    """Elements that several tensors have together, if the shape does not tell."""
    _nbytes_elsewhere: int = 0
    """Bytes of elements on other ranks."""
    _is_pending: bool = False
    """Whether its values are not made yet: it is lazy, or an optimizer has no state of it."""

    def _with_(self, **facts: Any) -> WeightEntry:
        return replace(self, **facts)

    @property
    def location(self) -> str:
        """A device, the path of its file, or the folder of its files."""
        return str(self._source.location)

    @property
    def requires_grad(self) -> bool | None:
        """Return whether backward computes a gradient for it, None for files."""
        return self._source.requires_grad  # type: ignore[no-any-return]

    @property
    def _is_trained(self) -> bool | None:
        return self.requires_grad if self.kind == "parameter" or self.requires_grad else None

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The bytes of its elements in files; empty in memory."""
        return () if self.problem else self._source.extents

    @property
    def numel(self) -> int:
        """Return the number of elements, 0 if the shape is unknown."""
        if self._several_numel is not None:
            return self._several_numel
        # A size of -1 is one that is not told.
        return math.prod(self.shape) if self.shape is not None and -1 not in self.shape else 0

    @property
    def _has_part(self) -> bool:
        return self.problem == IN_PARTS and self.nbytes > 0

    @property
    def _can_be_read(self) -> bool:
        return not self.problem or self._has_part

    @property
    def _num_parameters(self) -> int | None:
        return self._packed.num_parameters if self._packed is not None else self.numel

    @property
    def _dtype_of_values(self) -> str:
        return self._source.dtype_of_values or self.dtype

    @property
    def _is_nothing(self) -> bool:
        return isinstance(self._source, NoSource) and not self._source.location

    @property
    def tensor(self) -> Any:
        """The tensor or the array itself; None if it is not in memory."""
        return self._source.held

    @property
    def codes(self) -> WeightEntry | None:
        """Return the stored codes of a quantized weight, else None."""
        codes = self._source.codes
        return self._with_(_source=codes, dtype=codes.dtype_of_values, note="") if codes is not None else None

    def plan(self, index: Any = ..., *, shard: str | None = None) -> Any:
        """Return a plan of `to_numpy` without reading a value; raises as `to_numpy` does."""
        # Before the source is asked, which may have no values and no such method.
        of_shard = self._of_shard(shard)
        return self._source.plan(index, **of_shard)

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None,
        shard: str | None = None,
    ) -> Any:  # fmt: skip
        """Return the values at `index` as an array; only those are read.

        Parameters
        ----------
        index : optional
            Basic indices: integers, slices, ``...`` and None.
        copy, writeable, dtype : optional
            As of `to_numpy`. The values of a file are always new memory, as are those that a module makes. An array
            is shared, read-only unless `writeable` is True. A nested tensor gives a list.
        shard : {"local", "full"}, optional
            As of `to_numpy`: "local" indexes this rank's part, and "full" gathers all of it, with all ranks together.

        Raises
        ------
        NoDataError
            If there are no values, for the reason that `problem` tells.
        CopyRequiredError
            For ``copy=False`` where the values are those of a file, or made for the request.
        ChangedFileError, CheckpointError
            If the file has changed since it was listed, or its bytes are damaged as far as a checksum tells.
        BadRequestError
            For another index, or one out of bounds.
        """
        of_shard = self._of_shard(shard)
        return self._source.to_numpy(index, copy=copy, writeable=writeable, dtype=dtype, **of_shard)

    def _of_shard(self, shard: str | None) -> dict[str, str]:
        check_shard(shard)
        if shard is not None and self._source.is_part:
            return {"shard": shard}
        self._check_readable()
        return {}

    def _values(self) -> Any:
        self._check_readable()
        return self._source.values()

    def _values_here(self) -> Any:
        self._check_readable(is_part_enough=True)
        return self._source.values()

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block.

        A sharded weight has the statistics of this rank's shard, as in `tnp.stats`. Errors are those of `to_numpy`.
        """
        self._check_readable(is_part_enough=True)
        if self._packed is not None:
            said = f"{shown_name(self.name)} has {self.note}, whose statistics mean nothing; to_numpy gives them"
            raise NoDataError(said)
        return self._source.stats()

    def _check_readable(self, *, is_part_enough: bool = False) -> None:
        """Raise NoDataError if there are no values, with expressions to use instead."""
        if not self.problem or (is_part_enough and self._source.is_part):
            return
        tensor = self.code or "tensor"
        # A part of a sum is no value.
        local = f"{tensor}.to_local(), or " if self._nbytes_elsewhere else ""
        cure = f'; take {local}tnp.to_numpy({tensor}, shard="full") on all ranks together'
        said = f"{shown_name(self.name)} has no values to read: {cut(self.problem, MAX_TOLD)}"
        raise NoDataError(said + (cure if self._source.is_part else ""))

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        shape = shape_text(self.shape, self.kind) or "shape not known yet"
        said = filter(None, [self.kind, shape, self.dtype, self.location, self.note, self.problem])
        return f"<{shown_name(self.name)}: {', '.join(cut(one, MAX_TOLD) for one in said)}>"


class NotListed(str):
    """A problem that hides weights, so that a comparison is not complete."""


class NotOfModule(NotListed):
    """A problem that hides values saved next to a model, which no module has."""


def noted(entry: WeightEntry, note: str) -> WeightEntry:
    return entry._with_(note=", ".join(filter(None, (note, entry.note))))


def nothing(name: str, kind: str, code: str, problem: str, location: str = "") -> WeightEntry:
    """Return a name without values: registered as None, or missing in a file."""
    return WeightEntry(name, kind, None, "", 0, NoSource(location), code, problem=problem)


def shape_text(shape: tuple[int, ...] | None, kind: str) -> str:
    """Return a shape as text, ``""`` if it is unknown."""
    unknown = "computed when asked" if kind == COMPUTED else ""
    return unknown if shape is None else cut(str(shape).replace("-1", "?"), MAX_TOLD)


_COUNTERS = frozenset("num_batches_tracked position_ids token_type_ids relative_position_index cache_position".split())


def is_counter(entry: WeightEntry) -> bool:
    """Return whether a weight of int64 or bool is a buffer, or has a known name."""
    is_of_counter = entry.kind == "buffer" or entry.name.rpartition(".")[2] in _COUNTERS
    return entry.dtype in ("int64", "bool") and is_of_counter
