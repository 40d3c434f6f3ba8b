"""The record of statistics, `TensorStats`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.stats.distribution import Distribution, Histogram, added_up
from tensornp.errors import BadRequestError

ALL, SEVERAL, PARTIAL = "all elements", "several parts", "partial"
_MAX_SCOPE = 120
SHARD = "local shard"
"""The first words of the scope of a sharded tensor."""
HistogramChoice = Literal["auto", "all"] | None
Figure = Any
"""A number, or an array with one for each index of an axis."""
MIN_RATIO = 10.0
"""The ratio to the median norm from which a channel stands out."""
FIGURES = ("count", "nan", "posinf", "neginf", "zeros", "min", "max", "sum", "mean", "std", "is_complex")


@dataclass(frozen=True, slots=True)
class ChannelNorms:
    """The channels of a weight that are zero throughout, or have 10 times the median norm of the others."""

    axis: int
    num: int
    num_dead: int
    dead: tuple[int, ...]
    num_outliers: int
    outliers: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, repr=False)
class TensorStats:
    """Statistics of the elements of a tensor, or with an axis, arrays of them.

    Statistics of parts add up: ``a + b``, or `sum` of many, are those of all together.

    Attributes
    ----------
    count : int
        Elements that were read or are known.
    nan, posinf, neginf, zeros : int
        Numbers of NaN, infinities and zeros. A complex number is NaN if one of its parts is; else it is infinite, and
        counts as `posinf`, if one of its parts is infinite.
    min, max : float or int
        Extremes of the finite elements, or None if there are none. For complex elements, these and all that follow are
        those of the modulus.
    sum : float or int
        Exact for integers, except along an axis.
    mean, std : float
        Mean and standard deviation of the finite elements, in float64; `std` is that of the population (``ddof=0``).
    scope : str
        "all elements", "7 of 9 shown", "partial: 1,000 of 5,000 elements", "local shard of rank 1", or without a group
        of processes "local shard at (1,) of the mesh".
    distribution : Distribution or None
        The counts under `histogram` and `quantile`.
    is_complex : bool
        Whether the elements are complex; for statistics of their parts, pass ``t.real`` or ``t.imag``.
    channels : tuple of ChannelNorms
        Rows and columns of a weight that are zero or stand out.
    fingerprint : str
        Equal for weights of equal values in the same order (xxh3, 128 bits). `fingerprint` and `channels` do not take
        part in equality.
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
    distribution: Distribution | None = dataclasses.field(default=None, compare=False)
    is_complex: bool = False
    channels: tuple[ChannelNorms, ...] = dataclasses.field(default=(), compare=False)
    fingerprint: str = dataclasses.field(default="", compare=False)

    @property
    def finite(self) -> Figure:
        """Number of finite elements."""
        return self.count - self.nan - self.posinf - self.neginf

    @property
    def num_infinite(self) -> Figure:
        """Number of infinite elements of either sign."""
        return self.posinf + self.neginf

    @property
    @np.errstate(all="ignore")
    def norm(self) -> Figure:
        """The root of the sum of squares of the finite elements, as float64; None if there are none."""
        if self.mean is None:
            return None
        root = np.hypot(self.mean, self.std) * np.sqrt(self.finite)
        return root if np.ndim(root) else float(root)

    @property
    def histogram(self) -> Histogram | None:
        """Counts in at most 64 bins from `min` to `max`; None if it was not requested, or nothing is finite."""
        if self.distribution is None or self.min is None or not len(self.distribution.numbers):
            return None
        return self.distribution.histogram(float(self.min), float(self.max))

    @property
    def scope_of_histogram(self) -> str:
        """The elements under `histogram` and `quantile`: those of `scope`, or a sample of them."""
        if self.distribution is None or self.distribution.one_in == 1:
            return self.scope
        return self.distribution.scope + (f", {self.scope}" if self.scope != ALL else "")

    @property
    def accuracy(self) -> str:
        """How exact quantiles are: "exact", "values ± 0.4 %", "sampled 1/17"; empty without a distribution."""
        return self.distribution.accuracy if self.distribution is not None else ""

    @np.errstate(all="ignore")
    def quantile(self, q: Any) -> Any:
        """Return the quantile `q` of the finite elements, or an array of quantiles for several.

        Ranks are interpolated as `numpy.quantile` does. The result is exact for up to 16,384 elements, and for bfloat16
        and shorter floats; else it is within 0.4 % (integers up to 256 are exact). See `accuracy`.

        Raises
        ------
        BadRequestError
            If `q` is not between 0 and 1, there is no distribution, or nothing is finite.
        """
        # A tensor would be locked as an array.
        listed = q.tolist() if hasattr(q, "tolist") else q
        try:
            shares = np.asarray(listed, np.float64)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            shares = np.array(np.nan)
        if not np.all((shares >= 0) & (shares <= 1)):
            raise BadRequestError(f"q must be a share between 0 and 1, got {quoted(q)}")
        if self.distribution is None:
            raise BadRequestError('these statistics have no distribution; pass histogram="auto", and no axis')
        if self.min is None or not self.distribution.num_seen:
            raise BadRequestError("there is no quantile, since no element is finite")
        low, high = float(self.min), float(self.max)
        # The ends are known, even if only a sample was counted.
        ends, is_integer = {0.0: low, 1.0: high}, isinstance(self.min, int)
        found = [
            ends[share] if share in ends else self.distribution.quantile(share, low, high, is_integer=is_integer)
            for share in shares.reshape(-1).tolist()
        ]
        return np.array(found).reshape(shares.shape) if shares.ndim else found[0]

    def __add__(self, other: Any) -> TensorStats:
        """Return the statistics of both together."""
        if not isinstance(other, TensorStats):
            return NotImplemented
        if np.ndim(self.count) or np.ndim(other.count):
            raise BadRequestError("statistics along an axis do not add up; ask for those of all elements")
        if self.is_complex != other.is_complex and self.count and other.count:
            raise BadRequestError("statistics of complex and real numbers do not add up; take those of t.real")
        return _merged(self, other)

    def __radd__(self, other: Any) -> TensorStats:
        # `sum` begins with 0.
        return self if other == 0 else NotImplemented

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        names = [name for name in FIGURES if name not in ("sum", "is_complex")]
        said = ((name, getattr(self, name)) for name in [*names, "norm", "scope"])
        shown = [f"{name}={f'array of {len(v)}' if np.ndim(v) else repr(v)}" for name, v in said]
        if self.distribution is not None:
            shown.append(f"accuracy={self.accuracy!r}")
        return f"TensorStats({', '.join(shown)})"


def sum_of(parts: Iterable[TensorStats]) -> TensorStats:
    found = None
    for part in parts:
        found = part if found is None else _merged(found, part)
    return found if found is not None else TensorStats(0)


def _merged(a: TensorStats, b: TensorStats) -> TensorStats:
    if not a.count or not b.count:
        return a if a.count else b
    both = [one for one in (a.distribution, b.distribution) if one is not None]
    low, high, total, mean, std = _moments(a, b)
    scope = a.scope if a.scope == b.scope == ALL else f"{a.scope} and {b.scope}"
    return TensorStats(
        a.count + b.count, a.nan + b.nan, a.posinf + b.posinf, a.neginf + b.neginf, a.zeros + b.zeros,
        low, high, total, mean, std,
        scope=scope if len(scope) <= _MAX_SCOPE else SEVERAL,
        distribution=added_up(both) if len(both) == 2 else None,
        is_complex=a.is_complex,
    )  # fmt: skip


def _moments(a: TensorStats, b: TensorStats) -> tuple[Figure, ...]:
    """Return min, max, sum, mean and std of two parts (Chan, Golub and LeVeque, 1979)."""
    if a.min is None or b.min is None:
        known = a if b.min is None else b
        return known.min, known.max, known.sum, known.mean, known.std
    total, finite = a.sum + b.sum, a.finite + b.finite
    share, difference = b.finite / finite, b.mean - a.mean
    mean = total / finite if isinstance(total, int) else a.mean + difference * share
    # Products, because ** raises where a product overflows to infinity.
    variance = a.std * a.std * (1 - share) + b.std * b.std * share + difference * difference * share * (1 - share)
    return min(a.min, b.min), max(a.max, b.max), total, mean, math.sqrt(variance)


class NotFinite(NamedTuple):
    goal: str
    number: int
    sign: str
    text: str
    is_alarm: bool


def not_finite(stats: TensorStats) -> Iterator[NotFinite]:
    # An infinite complex number has no single sign.
    plus = "" if stats.is_complex else "+"
    found = ("nan", stats.nan, "NaN"), ("inf", stats.posinf, f"{plus}Inf"), ("inf", stats.neginf, "-Inf")
    for goal, number, sign in found:
        if number:
            said = f"{number:,} " if number < stats.count else "all " if stats.count > 1 else ""
            yield NotFinite(goal, number, sign, said + sign, sign != "-Inf" or not is_mask(stats))


def is_mask(stats: TensorStats) -> bool:
    """Return whether the values are zeros and minus infinities, as in a mask that is added to scores."""
    return bool(stats.neginf) and not stats.nan and not stats.posinf and stats.min == stats.max == 0


def alarms_of(stats: TensorStats) -> list[NotFinite]:
    return [one for one in not_finite(stats) if one.is_alarm]


def alarm_text(stats: TensorStats | None) -> str:
    return ", ".join(one.text for one in alarms_of(stats)) if stats is not None else ""


def shards_told(scopes: Iterable[str]) -> str:
    """Return the shards in the scopes of many tensors, each once: "local shards of rank 3"."""
    shards = dict.fromkeys(scope for scope in scopes if scope.startswith(SHARD))
    return ", ".join(scope.replace(SHARD, f"{SHARD}s", 1) for scope in shards)
