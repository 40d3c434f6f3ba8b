"""Compare two tensors or arrays: the differences, their size, and a verdict in a few words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.memory.aliases import Target
from tensornp.core.tensor.kinds import form_of
from tensornp.core.values.compare.numbers import PairTally, pairs_of
from tensornp.core.values.sources import Source, source_of
from tensornp.core.values.stats.record import ALL
from tensornp.core.values.stored import StoredValues, described
from tensornp.errors import NoDataError

Index = tuple[int, ...]
_FEW = 0.1
_NEARLY_ALL = 0.99
NEARLY_ALL = "nearly all elements differ"
DENSE = (NEARLY_ALL, "many elements differ")
"""The last words of verdicts on changes of many elements."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The differences between two tensors or arrays, element by element.

    Attributes
    ----------
    equal : bool
        Whether shape, dtype and values are equal: NaN to NaN, and 0.0 to -0.0.
    same_bits : bool
        Whether every bit is the same, with shape and dtype; for floats of 16 bits and fewer, any NaN is like another.
    verdict : str
        "same bits", "equal", "cast from float32", "3 of 1,000 differ, first at [17]",
        "nearly all elements differ", or the two shapes.
    count : int
        Elements that were compared.
    max_abs : float or int
        The largest difference of elements that are finite on both sides, as are all numbers below; exact for integers
        of one dtype; None if nothing was compared.
    relative : float
        The norm of the difference over that of the first.
    cosine_distance : float
        1 − cos of the angle between the two, from 0 to 2.
    first_difference : tuple of int or None
        The index of the first element that differs.
    missing, unexpected, reshaped, retyped : tuple of str
        For two single tensors, `reshaped` and `retyped` name none or the tensor itself.
    scope : str
        The elements that were read.
    """

    equal: bool
    same_bits: bool
    verdict: str
    _shapes: tuple[tuple[int, ...], tuple[int, ...]]
    _dtypes: tuple[str, str]
    count: int = 0
    _num_changed: int = 0
    _finite: int = 0
    _only_finite_first: int = 0
    _only_finite_second: int = 0
    max_abs: float | int | None = None
    relative: float | None = None
    cosine_distance: float | None = None
    first_difference: Index | None = None
    _first_values: tuple[Any, Any] | None = None
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    scope: str = "all elements"
    _norm: float | None = None
    _norm_of_difference: float | None = None
    _largest_difference: Index | None = None
    _note: str = ""

    @property
    def _is_odd(self) -> bool:
        return bool(self._only_finite_first or self._only_finite_second)

    @property
    def changed_fraction(self) -> float:
        """The share of elements that are not equal."""
        return self._num_changed / self.count if self.count else 0.0

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        said = [self.verdict]
        if self.first_difference is not None and self._first_values is not None:
            at, (a, b) = list(self.first_difference), self._first_values
            said.append(f"{a!r} and {b!r}{'' if 'first at' in self.verdict else f' at {at}'}")
        if self.max_abs:
            said.append(f"largest difference {self.max_abs:.6g}")
        if self.relative:
            said.append(f"relative {self.relative:.3g}")
        if self.scope != ALL:
            said.append(self.scope)
        if self._note:
            said.append(self._note)
        return f"Comparison({'equal' if self.equal else 'not equal'}: {', '.join(said)})"


@outside_modes
def compare(a: Any, b: Any) -> Comparison:
    """Compare two tensors or arrays, of any mix of kinds, dtypes and devices.

    Parameters
    ----------
    a, b : torch.Tensor, an object that stands for one, numpy.ndarray

    Returns
    -------
    Comparison
        Its `repr` names the first difference, so ``assert tnp.compare(a, b).equal`` explains its failure.

    Raises
    ------
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.

    Notes
    -----
    - Reads both once, block by block, in less than 32 MiB of new memory; sparse tensors become dense.
    - Norms of numbers beyond 1e154 are infinite. An element that a mask hides counts as NaN.
    - Nothing is changed.
    """
    pair = [_unmasked(one) for one in (a, b)]
    first, second = (source_of(one, in_order=True, is_dense=True, caller="compare") for one in pair)
    is_other = first.shard is not None and second.shard is not None and not first.shard.holds_the_same(second.shard)
    if is_other or first.scope != second.scope:
        held = (first.shard, second.shard) if is_other else (first.scope, second.scope)
        cure = "compare t.full_tensor(), which all ranks must call"
        raise NoDataError(f"the first holds {held[0]}; the second, {held[1]}; {cure}")
    # The dtypes are those of a tensor in memory.
    own, other = ((type(one) is StoredValues and one.quantized) or described(one).dtype for one in (a, b))
    shapes, dtypes = (first.shape, second.shape), (own, other)
    if (first.shape, first.nested_shapes) != (second.shape, second.nested_shapes):
        verdict = f"shapes differ: {_shapes_text(first)} and {_shapes_text(second)}"
        retyped = ("tensor",) if dtypes[0] != dtypes[1] else ()
        return Comparison(False, False, verdict, shapes, dtypes, reshaped=("tensor",), retyped=retyped)
    with np.errstate(all="ignore"):
        tally = PairTally(*dtypes)
        for blocks in pairs_of(first, second):
            tally.add(*blocks)
    if first.is_dequantized or second.is_dequantized or pair[0] is not a or pair[1] is not b:
        # Codes and hidden elements were not compared.
        tally.has_same_bits = False
    if tally.has_same_bits and type(a) is StoredValues and type(b) is StoredValues and a.codes and b.codes:
        tally.has_same_bits = a.scheme == b.scheme and compare(a.codes, b.codes).same_bits
    found = _told(tally, shapes, dtypes, first, second)
    is_in_memory = all(is_tensor(one) or is_array(one) for one in (a, b))
    if is_in_memory and Target(a).compare(b) in ("same object", "same elements"):
        found = replace(found, _note="both are the same memory: a copy before a step, as by .clone(), keeps old values")
    return found


def _unmasked(obj: Any) -> Any:
    """Return a masked tensor or array as an array with NaN for what it hides; other objects as they are."""
    is_masked = is_tensor(obj) and form_of(obj).kind.is_masked
    array = to_numpy(obj) if is_masked else obj
    if not issubclass(type(array), np.ma.MaskedArray):
        return obj
    return array.astype(np.result_type(array.dtype, np.float32)).filled(np.nan)


def _shapes_text(source: Source) -> str:
    # The last one of nested shapes stands for their end.
    shapes = [*map(str, source.nested_shapes[:-1])]
    return f"[{', '.join(shapes[:3])}{', ...' if shapes[3:] else ''}]" if source.nested_shapes else str(source.shape)


def _told(tally: PairTally, shapes: Any, dtypes: tuple[str, str], source: Source, other: Source) -> Comparison:
    index, largest = (None if at is None else source.index_of(at) for at in (tally.first, tally.largest_at))
    is_one_dtype = dtypes[0] == dtypes[1]
    max_abs = relative = cosine = norm = change = None
    if tally.finite:
        norm, other_norm, change = np.sqrt(tally.squares).tolist()
        max_abs, relative = tally.largest, change / norm if norm else math.inf if change else 0.0
        cosine = 0.0 if norm == other_norm else 1.0
        if norm and other_norm:
            # Exact for small angles: (‖Δ‖² − (‖A‖ − ‖B‖)²) / (2 ‖A‖ ‖B‖)
            gap = norm - other_norm
            cosine = min(max((change - gap) * (change + gap) / (2 * norm * other_norm), 0.0), 2.0)
    return Comparison(
        is_one_dtype and not tally.num_changed, is_one_dtype and tally.has_same_bits,
        _verdict(tally, dtypes, index), shapes, dtypes, tally.count, tally.num_changed, tally.finite,
        tally.only_first, tally.only_second, max_abs, relative, cosine, index, tally.first_values,
        retyped=() if is_one_dtype else ("tensor",), scope=source.scope if source.scope != ALL else other.scope,
        _norm=norm, _norm_of_difference=change,
        _largest_difference=largest,
    )  # fmt: skip


def _verdict(tally: PairTally, dtypes: tuple[str, str], index: Index | None) -> str:
    a, b = dtypes
    if a != b:
        if tally.is_cast_of_first and tally.num_changed:
            return f"cast from {a}"
        if tally.is_cast_of_second and tally.num_changed:
            return f"cast from {b}"
        if not tally.num_changed:
            return f"the same values, {a} and {b}"
    elif not tally.num_changed:
        return "same bits" if tally.has_same_bits else "equal"
    said = f"{a} and {b}: " if a != b else ""
    if index is not None and tally.num_changed <= max(_FEW * tally.count, 1):
        verb = "differs" if tally.num_changed == 1 else "differ"
        return f"{said}{tally.num_changed:,} of {tally.count:,} {verb}, first at {list(index)}"
    return said + DENSE[tally.num_changed < _NEARLY_ALL * tally.count]
