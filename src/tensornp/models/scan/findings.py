"""Find anomalies in the statistics of a weight by `RULES`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN, largest
from tensornp.core.values.stats.record import MIN_RATIO, ChannelNorms, TensorStats, is_mask
from tensornp.models.entries.entry import WeightEntry

ALARM_RANK = 2
"""Before this rank, values are not finite, which `alarms` calls an alarm."""
QUIET_RANK = 5
"""From this rank on, a finding is a remark: healthy models have it, too."""
ODD_RANK = QUIET_RANK + 2
PLAIN_RANK = QUIET_RANK + 3
"""Rank of all ones or all zeros, as biases and norms are before training."""
EQUAL_RANK = QUIET_RANK + 4
_HUGE = 1e30
_FLOATS = ("float", "bfloat", "complex")
_ADAPTER = re.compile(r"lora_(?:B|up|embedding_B)(?:\.|$)")
"""Matrices that are 0 before the first step of training."""
UNRANKED = 99


class Finding(NamedTuple):
    """A sentence on a weight with its rank; `what` follows a number of weights."""

    rank: int
    text: str
    what: str = "with findings"

    @property
    def is_alarm(self) -> bool:
        return self.rank < ALARM_RANK

    def with_scope(self, number: int) -> str:
        """Return ``2 weights have NaN``, or ``125 all ones or all zeros``."""
        if self.is_alarm:
            return f"{counted(number, 'weight')} {'has' if number == 1 else 'have'} {self.what}"
        return f"{number:,} {self.what}"


def by_kind(found: Iterable[tuple[str, Sequence[Finding]]]) -> dict[Finding, list[str]]:
    """Return the names of weights by their worst kind of finding, without its text, the worst first."""
    kinds: dict[Finding, list[str]] = {}
    for name, findings in found:
        if findings:
            kinds.setdefault(min(findings)._replace(text=""), []).append(name)
    return dict(sorted(kinds.items()))


def findings_of(entry: WeightEntry, stats: TensorStats) -> Iterator[Finding]:
    """Yield the findings in the statistics of a weight."""
    for rank, what, told in RULES:
        for text in filter(None, told(entry, stats)):
            yield Finding(rank, text, what)


_Told = list[str]
"""Sentences; an empty one counts for nothing."""


def _variance(entry: WeightEntry, stats: TensorStats) -> _Told:
    is_variance = entry.name.rpartition(".")[2] == "running_var" and stats.min is not None and stats.min <= 0
    return [f"a running variance is {stats.min:.6g}, and not positive"] if is_variance else []


def _largest(entry: WeightEntry, stats: TensorStats) -> _Told:
    name = entry._dtype_of_values
    if stats.max is None or not name.startswith(_FLOATS) or name not in KNOWN:
        return []
    value = max(stats.min, stats.max, key=abs)
    is_short = KNOWN[name].values_per_element == 1 and name.startswith(("float8", "float16", "bfloat16"))
    if is_short and abs(value) >= largest(name):
        return [f"a value is {value:.6g}, the {'largest' if value > 0 else 'least'} that {entry.dtype} has"]
    # A mask has the least value of its dtype beside zeros.
    is_huge = abs(value) >= _HUGE and not (stats.max == 0 and stats.min < -_HUGE)
    return [f"a value is {value:.6g}, beyond any weight"] if is_huge else []


def _is_zero_matrix(entry: WeightEntry, stats: TensorStats) -> bool:
    is_matrix = entry.kind in ("parameter", "tensor") and len(entry.shape or ()) > 1 and min(entry.shape or (0,)) > 1
    is_zero = stats.count == stats.finite > 1 and stats.min == stats.max == 0
    return is_zero and is_matrix and entry._dtype_of_values.startswith(_FLOATS) and not _ADAPTER.search(entry.name)


def _constant(entry: WeightEntry, stats: TensorStats, *, is_plain: bool) -> _Told:
    is_constant = stats.count == stats.finite > 1 and stats.min == stats.max
    if not is_constant or (stats.min in (0, 1)) is not is_plain or _is_zero_matrix(entry, stats):
        return []
    return [f"all {stats.count:,} are {stats.min:.6g}"]


def _dead(entry: WeightEntry, stats: TensorStats) -> _Told:
    return [
        f"{one.num_dead:,} of {_channels(one, entry)} {'is' if one.num_dead == 1 else 'are'} zero throughout: "
        f"{', '.join(f'{i:,}' for i in one.dead)}{', …' if one.num_dead > len(one.dead) else ''}"
        for one in stats.channels if one.num_dead
    ]  # fmt: skip


def _outlying(entry: WeightEntry, stats: TensorStats) -> _Told:
    return [
        f"{one.num_outliers:,} of {_channels(one, entry)} {'has' if one.num_outliers == 1 else 'have'} {MIN_RATIO:g} "
        f"times the median norm or more: {', '.join(f'{i:,} ({ratio:.3g} times)' for i, ratio in one.outliers)}"
        f"{', …' if one.num_outliers > len(one.outliers) else ''}"
        for one in stats.channels if one.num_outliers
    ]  # fmt: skip


def _share(number: int, count: int, what: str) -> str:
    return f"{number:,} of {count:,} {'is' if number == 1 else 'are'} {what}" if number else ""


def _channels(norms: ChannelNorms, entry: WeightEntry) -> str:
    if len(entry.shape or ()) == 2:
        return f"{norms.num:,} {('rows', 'columns')[norms.axis]}"
    return f"{norms.num:,} channels along axis {norms.axis}"


RULES: tuple[tuple[int, str, Callable[[WeightEntry, TensorStats], _Told]], ...] = (
    (0, "NaN", lambda _, stats: [_share(stats.nan, stats.count, "NaN")]),
    (1, "infinities", lambda _, stats: [_share(0 if is_mask(stats) else stats.num_infinite, stats.count, "infinite")]),
    (2, "with a running variance that is not positive", _variance),
    (3, "with the largest value of their dtype", _largest),
    (
        4, "matrices of zeros",
        lambda entry, stats: [f"a matrix whose {stats.count:,} elements are all 0"] * _is_zero_matrix(entry, stats),
    ),
    (4, "constant", lambda entry, stats: _constant(entry, stats, is_plain=False)),
    (QUIET_RANK, "with channels of zeros", _dead),
    (QUIET_RANK + 1, "with channels that stand out", _outlying),
    (PLAIN_RANK, "all ones or all zeros", lambda entry, stats: _constant(entry, stats, is_plain=True)),
    (
        QUIET_RANK + 5, "masks",
        lambda _, stats: [f"a mask: {_share(stats.neginf, stats.count, '-Inf')}, the others are 0"] * is_mask(stats),
    ),
)  # fmt: skip
"""The worst first: rank, words after a number of weights, and a function that returns sentences."""
