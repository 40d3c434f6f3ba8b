"""Find anomalies in the statistics of a weight by `RULES`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN, largest
from tensornp.core.values.stats.channels import MIN_RATIO, ChannelNorms
from tensornp.core.values.stats.record import TensorStats, is_mask
from tensornp.models.entries.entry import WeightEntry

ALARM_RANK = 2
"""Before this rank, values are not finite, which `alarms` calls an alarm."""
QUIET_RANK = 5
"""From this rank on, a finding may be so on purpose."""
ODD_RANK = QUIET_RANK + 2
"""Rank of a weight that stands out among its siblings."""
PLAIN_RANK = QUIET_RANK + 3
"""Rank of all ones or all zeros, as biases and norms are before training."""
EQUAL_RANK = QUIET_RANK + 4
MASK_RANK = QUIET_RANK + 5
_HUGE = 1e30
_FLOATS = ("float", "bfloat", "complex")
_ADAPTER = re.compile(r"lora_(?:B|up|embedding_B)(?:\.|$)")
"""Matrices that are 0 before the first step of training."""
UNRANKED = 99
"""The rank of a weight without findings."""


class Finding(NamedTuple):
    """A sentence on a weight with its rank; `what` follows a number of weights."""

    rank: int
    text: str
    what: str = "with findings"


class Kind(NamedTuple):
    """The rank and the words of a finding of several weights, in this order."""

    rank: int
    what: str

    @property
    def is_alarm(self) -> bool:
        return self.rank < ALARM_RANK

    def with_scope(self, number: int) -> str:
        """Return ``2 weights have NaN``, or ``125 constant, as initialized``."""
        if self.is_alarm:
            return f"{counted(number, 'weight')} {'has' if number == 1 else 'have'} {self.what}"
        return f"{number:,} {self.what}"


def kind_of(findings: Sequence[Finding]) -> Kind | None:
    """Return the kind of the worst finding of a weight, None without one."""
    worst = min(findings, default=None)
    return Kind(worst.rank, worst.what) if worst is not None else None


def by_kind(found: Iterable[tuple[str, Sequence[Finding]]]) -> dict[Kind, list[str]]:
    """Return the names of weights by their worst kind of finding, the worst first."""
    kinds: dict[Kind, list[str]] = {}
    for name, findings in found:
        if (kind := kind_of(findings)) is not None:
            kinds.setdefault(kind, []).append(name)
    return dict(sorted(kinds.items()))


def findings_of(entry: WeightEntry, stats: TensorStats) -> Iterator[Finding]:
    """Yield the findings in the statistics of a weight."""
    for rule in RULES:
        for text in rule.told(entry, stats):
            yield Finding(rule.rank, text, rule.what)


class Rule(NamedTuple):
    """A rank, and a function that yields a sentence for each finding."""

    rank: int
    told: Callable[[WeightEntry, TensorStats], Iterator[str]]
    what: str = "with findings"


def _nan(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if stats.nan:
        yield _share(stats.nan, stats.count, "NaN")


def _infinite(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if stats.num_infinite and not is_mask(stats):
        yield _share(stats.num_infinite, stats.count, "infinite")


def _mask(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if is_mask(stats):
        yield f"a mask: {_share(stats.neginf, stats.count, '-Inf')}, the others are 0"


def _variance(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if stats.min is not None and stats.min <= 0 and entry.name.rpartition(".")[2] == "running_var":
        yield f"a running variance is {stats.min:.6g}, and not positive"


def _largest(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    top = _edge_of(entry._dtype_of_values)
    if top is not None and stats.max is not None and stats.max >= top:
        yield f"a value is {top:.6g}, the largest that {entry.dtype} has"
    elif top is not None and stats.min is not None and stats.min <= -top:
        yield f"a value is {-top:.6g}, the least that {entry.dtype} has"
    elif stats.max is not None and entry._dtype_of_values.startswith(_FLOATS):
        value = max(stats.min, stats.max, key=abs)
        # A mask has the least value of its dtype beside zeros.
        if abs(value) >= _HUGE and not (stats.max == 0 and stats.min < -_HUGE):
            yield f"a value is {value:.6g}, beyond any weight"


def _constant(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if stats.count == stats.finite > 1 and stats.min == stats.max not in (0, 1):
        yield f"all {stats.count:,} are {stats.min:.6g}"


def _zero_matrix(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    if _is_zero_matrix(entry, stats):
        yield f"a matrix whose {stats.count:,} elements are all 0"


def _is_zero_matrix(entry: WeightEntry, stats: TensorStats) -> bool:
    is_matrix = entry.kind in ("parameter", "tensor") and len(entry.shape or ()) > 1 and min(entry.shape or (0,)) > 1
    is_zero = stats.count == stats.finite > 1 and stats.min == stats.max == 0
    return is_zero and is_matrix and entry._dtype_of_values.startswith(_FLOATS) and not _ADAPTER.search(entry.name)


def _plain(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    is_constant = stats.count == stats.finite > 1 and stats.min == stats.max in (0, 1)
    if is_constant and not _is_zero_matrix(entry, stats):
        yield f"all {stats.count:,} are {stats.min:.6g}"


def _dead_channels(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    yield from (_dead(norms, entry) for norms in stats.channels if norms.num_dead)


def _outlying_channels(entry: WeightEntry, stats: TensorStats) -> Iterator[str]:
    yield from (_outlying(norms, entry) for norms in stats.channels if norms.num_outliers)


RULES = (
    Rule(0, _nan, "NaN"),
    Rule(1, _infinite, "infinities"),
    Rule(2, _variance, "with a running variance that is not positive"),
    Rule(3, _largest, "with the largest value of their dtype"),
    Rule(4, _zero_matrix, "matrices of zeros"),
    Rule(4, _constant, "constant"),
    Rule(QUIET_RANK, _dead_channels, "with channels of zeros"),
    Rule(QUIET_RANK + 1, _outlying_channels, "with channels that stand out"),
    Rule(PLAIN_RANK, _plain, "constant, as initialized"),
    Rule(MASK_RANK, _mask, "masks"),
)
"""The worst first; what the tree, the table and a page say of a scan derives from these."""


def _share(number: int, count: int, what: str) -> str:
    return f"{number:,} of {count:,} {'is' if number == 1 else 'are'} {what}"


def _dead(norms: ChannelNorms, entry: WeightEntry) -> str:
    more = ", …" if norms.num_dead > len(norms.dead) else ""
    which = ", ".join(f"{i:,}" for i in norms.dead)
    verb = "is" if norms.num_dead == 1 else "are"
    return f"{norms.num_dead:,} of {_channels(norms, entry)} {verb} zero throughout: {which}{more}"


def _outlying(norms: ChannelNorms, entry: WeightEntry) -> str:
    more = ", …" if norms.num_outliers > len(norms.outliers) else ""
    which = ", ".join(f"{i:,} ({ratio:.3g} times)" for i, ratio in norms.outliers)
    verb = "has" if norms.num_outliers == 1 else "have"
    return (
        f"{norms.num_outliers:,} of {_channels(norms, entry)} {verb} {MIN_RATIO:g} times the median norm or more: "
        f"{which}{more}"
    )


def _channels(norms: ChannelNorms, entry: WeightEntry) -> str:
    if len(entry.shape or ()) == 2:
        return f"{norms.num:,} {('rows', 'columns')[norms.axis]}"
    return f"{norms.num:,} channels along axis {norms.axis}"


def _edge_of(name: str) -> float | None:
    """Return the largest value of a float dtype of 8 or 16 bits; None for others."""
    is_short = (
        name in KNOWN and KNOWN[name].values_per_element == 1 and name.startswith(("float8", "float16", "bfloat16"))
    )
    return largest(name) if is_short else None
