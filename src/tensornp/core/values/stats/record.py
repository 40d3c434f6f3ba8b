"""`stats`: how many elements are NaN, infinite or zero, their extremes, mean, deviation, norm and distribution."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.reading.scopes import ALL, MAX_SCOPE, SEVERAL
from tensornp.core.values.stats.channels import ChannelNorms
from tensornp.core.values.stats.distribution import Distribution, added_up
from tensornp.core.values.stats.figures import Figures, combined
from tensornp.core.values.stats.histogram import Histogram
from tensornp.errors import BadRequestError

HistogramChoice = Literal["auto", "all"] | None
Figure = Any
"""A number, or an array with one for each index of an axis."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorStats:
    """Figures of the elements of a tensor; with an axis, each is an array with one figure for each of its indices.

    Those of parts add up: ``a + b``, or `sum` of many, are the statistics of both together.

    Attributes
    ----------
    count : int
        Elements that were read, or are known: all that `scope` says.
    nan, posinf, neginf, zeros : int
        How many of them are NaN, plus or minus infinity, or zero. A complex number is NaN if one of its parts is, and
        infinite, which counts as `posinf`, if one of its parts is infinite and none is NaN.
    min, max : float or int
        Of the finite elements; of complex ones, of their modulus, as all that follows. None where there are none.
    sum : float or int
        Exact for integers.
    mean, std : float
        Of the finite elements, in float64; `std` is that of the population (``ddof=0``). None where there are none.
    scope : str
        "all elements", "7 of 9 shown", "partial: 1,000 of 5,000 elements", "local shard of rank 1", or without a group
        of processes "local shard at (1,) of the mesh".
    changed_while_read : bool
        Whether somebody wrote to the tensor meanwhile, as far as that can be noticed; `scope` says so too.
    distribution : Distribution or None
        What `histogram` and `quantile` are made of.
    real, imag : TensorStats or None
        Of the two parts of complex elements.
    channels : tuple of ChannelNorms
        Of a weight of a model: which rows and columns are zero throughout, or stand out.
    fingerprint : str
        Of a weight of a model: equal for values of equal bits that lie in the same order (xxh3, 128 bits); else empty.
        Neither this nor `channels` takes part in equality.
    """

    count: Figure
    nan: Figure = 0
    posinf: Figure = 0
    neginf: Figure = 0
    zeros: Figure = 0
    min: Figure = None
    max: Figure = None
    sum: Figure = 0
    mean: Figure = None
    std: Figure = None
    scope: str = "all elements"
    changed_while_read: bool = False
    distribution: Distribution | None = None
    real: TensorStats | None = None
    imag: TensorStats | None = None
    channels: tuple[ChannelNorms, ...] = dataclasses.field(default=(), compare=False)
    fingerprint: str = dataclasses.field(default="", compare=False)

    @property
    def finite(self) -> Figure:
        """How many elements are finite."""
        return self.count - self.nan - self.posinf - self.neginf

    @property
    def num_infinite(self) -> Figure:
        """How many elements are infinite, of either sign."""
        return self.posinf + self.neginf

    @property
    @np.errstate(all="ignore")
    def norm(self) -> Figure:
        """The square root of the sum of squares of the finite elements, as float64; None where there are none."""
        if self.mean is None:
            return None
        root = np.hypot(self.mean, self.std) * np.sqrt(self.finite)
        return root if np.ndim(root) else float(root)

    @property
    def histogram(self) -> Histogram | None:
        """Counts in at most 64 bins from `min` to `max`; None where none was asked for, or nothing is finite."""
        if self.distribution is None or self.min is None or not self.distribution.num_seen:
            return None
        return self.distribution.histogram(float(self.min), float(self.max))

    @property
    def scope_of_histogram(self) -> str:
        """What `histogram` and `quantile` are made of: what `scope` says, or a sample of that."""
        if self.distribution is None or not self.distribution.is_sample:
            return self.scope
        return self.distribution.scope + (f", {self.scope}" if self.scope != ALL else "")

    @property
    def accuracy(self) -> str:
        """How exact quantiles are, in a few words: "exact", "values ± 0.5%"; empty where there is no distribution."""
        return self.distribution.accuracy if self.distribution is not None else ""

    @np.errstate(all="ignore")
    def quantile(self, q: Any) -> Any:
        """Return the number below which a share `q` of the finite elements lies, or an array for several shares.

        Ranks are interpolated as `numpy.quantile` does. Exact, as float64, of up to 16,384 elements, or where the dtype
        has no more than 16 bits; else what lies at a rank is told within 0.5% of it (of integers up to 256, exactly).
        Of a sample, its rank is within `histogram.rank_error`, with a probability of 95%.

        Raises
        ------
        BadRequestError
            If `q` is not between 0 and 1, or no distribution was asked for, or nothing is finite.
        """
        # A tensor would be locked as an array.
        listed = q.tolist() if hasattr(q, "tolist") else q
        try:
            shares = np.asarray(listed, np.float64)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            shares = np.array(np.nan)
        if not np.all((shares >= 0) & (shares <= 1)):
            raise BadRequestError(f"a quantile is asked by a share between 0 and 1, not {quoted(q)}")
        if self.distribution is None:
            raise BadRequestError('these statistics have no distribution; ask with histogram="auto", and without axis')
        if self.min is None or not self.distribution.num_seen:
            raise BadRequestError("there is no quantile, since no element is finite")
        low, high = float(self.min), float(self.max)
        # The ends are known, also where only a sample was counted.
        ends = {0.0: low, 1.0: high}
        every = shares.reshape(-1).tolist()
        of = functools.partial(self.distribution.quantile, low=low, high=high, is_integer=isinstance(self.min, int))
        found = [ends.get(share, of(share)) for share in every]
        return np.array(found).reshape(shares.shape) if shares.ndim else found[0]

    def __add__(self, other: Any) -> TensorStats:
        """Return the statistics of both; `scope` is that of both, or says that there are several."""
        if not isinstance(other, TensorStats):
            return NotImplemented
        if np.ndim(self.count) or np.ndim(other.count):
            raise BadRequestError("statistics along an axis do not add up; ask for those of all elements")
        if (self.real is None) != (other.real is None) and self.count and other.count:
            raise BadRequestError("statistics of complex and real numbers do not add up; add those of real and imag")
        return _sum_of(self, other)

    def __radd__(self, other: Any) -> TensorStats:
        # What `sum` begins with.
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorStats):
            return NotImplemented
        return all(
            _is_same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self) if f.compare
        )

    def __hash__(self) -> int:
        return hash((self.scope, np.shape(self.count) or self.count))

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        names = ["count", "nan", "posinf", "neginf", "zeros", "min", "max", "mean", "std", "norm", "scope"]
        said = ((name, getattr(self, name)) for name in names)
        shown = [f"{name}={f'array of {len(v)}' if np.ndim(v) else repr(v)}" for name, v in said]
        if self.distribution is not None:
            shown.append(f"accuracy={self.accuracy!r}")
        return f"TensorStats({', '.join(shown)})"

    @property
    def figures(self) -> Figures:
        """The figures by which those of parts are added up."""
        counted = (self.count, self.nan, self.posinf, self.neginf, self.zeros)
        return Figures(*counted, self.min, self.max, self.sum, self.mean, self.std)


def stats_of_figures(figures: Figures, **others: Any) -> TensorStats:
    """Return the statistics that consist of these figures."""
    f = figures
    return TensorStats(
        f.count, f.nan, f.posinf, f.neginf, f.zeros, f.min, f.max, f.total, f.mean, f.std, **others
    )  # fmt: skip


def _sum_of(a: TensorStats, b: TensorStats) -> TensorStats:
    if not a.count or not b.count:
        return a if a.count else b
    both = a.distribution, b.distribution
    parts = [(a.real, b.real), (a.imag, b.imag)]
    real, imag = (_sum_of(x, y) if x is not None and y is not None else None for x, y in parts)
    return stats_of_figures(
        combined([a.figures, b.figures]),
        scope=_both_scopes(a.scope, b.scope),
        changed_while_read=a.changed_while_read or b.changed_while_read,
        distribution=added_up([d for d in both if d is not None]) if None not in both else None,
        real=real, imag=imag,
    )  # fmt: skip


def _both_scopes(a: str, b: str) -> str:
    """Return what two scopes are together: of all elements and all elements, all; of many parts, that they are many."""
    if a == b == ALL:
        return a
    both = f"{a} and {b}"
    return both if len(both) <= MAX_SCOPE else SEVERAL


def _is_same(a: Any, b: Any) -> bool:
    if np.ndim(a) or np.ndim(b):
        # Compared as text, integers of any size are equal to themselves, and so is NaN.
        return np.shape(a) == np.shape(b) and repr(np.asarray(a).tolist()) == repr(np.asarray(b).tolist())
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
