"""Who else sees the bytes of a tensor: measured by address among all that a namespace reaches, and never deduced."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import an_instance, is_tensor
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.lowlevel.own_display import display_of, html_of
from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.memory.extents import RELATIONS, Relation
from tensornp.core.memory.former import Former
from tensornp.core.memory.relations import OUTDATED, Target
from tensornp.core.namespace.caller import names_of_caller
from tensornp.core.namespace.search import Searched, search
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import is_storage
from tensornp.core.tensor.paths import Kind, Path, expression_of
from tensornp.core.tensor.stand_ins import stand_in_of, stood_for
from tensornp.core.tensor.weight import refused
from tensornp.errors import BadRequestError, NotATensorError

MAX_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Alias:
    """One name that reaches the bytes of a tensor, or did so once.

    Attributes
    ----------
    name : str
        The expression that reaches it: ``b``, ``model.fc.weight``, ``Out[3]``.
    kind : str
        "tensor", "array", "parameter", "buffer" or "grad".
    relation : str
        "same object"; "same elements" (each index addresses the same element); "reinterpreted" (the same bytes through
        other strides, another dtype or a lazy conjugate); "overlapping" (some bytes belong to both); "may overlap" (too
        hard to tell in bounded time); "same storage" (disjoint views of it); "stale" (shared memory once, and the
        storage of one of them has moved since).
    byte_range : tuple of int, or None
        Between which bytes, counted from the tensor's first, both have elements; None where no byte is shared.
    note : str
        A sentence where more must be known.
    type_name : str
        The class of what it reaches: "Tensor", "ndarray", "memoryview".
    """

    name: str
    kind: Kind
    relation: Relation
    byte_range: tuple[int, int] | None = None
    note: str = ""
    type_name: str = ""


class Aliases(list[Alias]):
    """A list of `Alias`, the closest first, which says how far the search came.

    Attributes
    ----------
    num_names : int
        Objects that were looked at.
    is_complete : bool
        Whether that was all that the namespace reaches.
    left_out : str
        Why gradients were not looked at; empty where they were.
    """

    def __init__(self, found: list[Alias], num_names: int, is_complete: bool, left_out: str = "") -> None:
        super().__init__(found)
        self.left_out = left_out
        self.num_names = num_names
        self.is_complete = is_complete

    _display_, _repr_html_ = display_of, html_of

    def __str__(self) -> str:
        width = max((len(alias.name) for alias in self), default=0)
        lines = [f"{alias.name:<{width}}  {alias.relation:<13}  {alias.kind}" for alias in self]
        return "\n".join(filter(None, [*lines, self.remark]))

    @property
    def holds_aliases(self) -> bool:
        """Whether nobody has put anything else into the list."""
        return all(type(alias) is Alias for alias in self)

    @property
    def remark(self) -> str:
        """How far the search came and what it left out, or that it has found nothing."""
        said = [] if self.is_complete else [stopped_text(self.num_names)]
        said += [self.left_out] if self.left_out else []
        return "\n".join(said) or ("" if self else "nothing else sees these bytes")


def stopped_text(num_names: int) -> str:
    """Return how a search says that it did not look everywhere."""
    return f"search stopped at {num_names:,} names"


@never_compiled
def aliases(obj: Any, namespace: Mapping[str, Any] | None = None, *, max_seconds: float = MAX_SECONDS) -> Aliases:
    """List the aliases of a tensor or an array, the closest first.

    Looks at what the names reach: attributes, modules with their parameters, buffers and gradients, optimizer states,
    containers, IPython's ``Out``, NumPy arrays over any chain of bases, memoryviews. No property of any object is
    called, no value is read, nothing changes. A name of `obj` itself is listed as "same object".

    Parameters
    ----------
    obj : torch.Tensor, numpy.ndarray, or an object that stands for one
    namespace : mapping of str to object, optional
        By default, the names that the caller sees.
    max_seconds : float
        After which the search stops; ``.is_complete`` of the result then is False.

    Raises
    ------
    NotATensorError
        If `obj` is neither a tensor nor an array.

    Notes
    -----
    Costs about a microsecond for each tensor or array. Whether two views overlap is exact; where that could take
    exponential time, the answer is "may overlap" after some milliseconds.
    """
    # A property `__class__` is not asked.
    if not is_tensor(obj) and stand_in_of(obj) is not None:
        with modes.outside_modes():
            obj = stood_for(obj)
    if not (is_tensor(obj) or issubclass(type(obj), np.ndarray) or is_storage(obj)):
        raise NotATensorError(f"aliases takes a tensor or an array, not {refused(obj)}")
    if namespace is None:
        namespace = names_of_caller(sys._getframe())
    if not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace is a mapping of names to objects, not {an_instance(namespace)}")
    (found,), _ = find_aliases([(obj, None)], namespace, _seconds(max_seconds))
    return found


def _seconds(asked: Any) -> float:
    try:
        seconds = float(asked)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        seconds = math.nan
    if math.isnan(seconds):
        raise BadRequestError(f"max_seconds must be a number of seconds, got {quoted(asked)}")
    return seconds


@modes.outside_modes
def find_aliases(
    objs: list[tuple[Any, TensorInfo | None]],
    namespace: Mapping[str, Any],
    max_seconds: float,
    former: Former | None = None,
    unguarded: Unguarded | None = None,
) -> tuple[list[Aliases], Searched]:
    """Return the aliases of each of `objs`, and the one search by which all were found.

    With each comes its metadata, where that was read already. `former` knows what has shared memory with the first of
    `objs`, and takes what does so now. `unguarded` is as in `search`.
    """
    found: list[list[tuple[Path, Kind, Relation, tuple[int, int] | None, str, type]]] = [[] for _ in objs]
    keys: dict[int, Path] = {}

    def visit(other: Any, kind: Kind, path: Path) -> None:
        if kind == "parameter":
            keys.setdefault(id(other), path)
        for target, hits in targets:
            try:
                relation, bounds, note = target.compare(other)
            except Exception:
                # What cannot be read has no address that is known.
                continue
            if relation is not None:
                hits.append((path, kind, relation, bounds, note, type(other)))
                if former is not None and hits is found[0] and relation not in ("stale", "same object"):
                    former.note(other, objs[0][0])
            elif former is not None and hits is found[0] and other in former:
                hits.append((path, kind, "stale", None, OUTDATED, type(other)))

    with modes.outside_modes():
        targets = [(Target(obj, info), hits) for (obj, info), hits in zip(objs, found, strict=True)]
        searched = search(namespace, max_seconds, visit, unguarded=unguarded)
    return [_listed(hits, keys, searched) for hits in found], searched


def _listed(hits: list[Any], keys: Mapping[int, Path], searched: Searched) -> Aliases:
    hits.sort(key=lambda hit: RELATIONS.index(hit[2]))
    listed = [
        Alias(expression_of(path, keys), kind, how, where, note, cls.__name__)
        for path, kind, how, where, note, cls in hits
    ]
    return Aliases(listed, searched.num_names, searched.is_complete, NOT_LOOKED_AT if searched.left_out else "")
