"""Decide for every view which values are alarming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tensornp.core.values.stats.record import TensorStats


class NotFinite(NamedTuple):
    """Non-finite values of one sort: `goal` locates them, `number` of `of` have it."""

    goal: str
    number: int
    of: int
    sign: str
    is_alarm: bool = True

    @property
    def text(self) -> str:
        """The number and the sort: ``3 NaN``, ``all NaN``; for a single element the sort."""
        number = f"{self.number:,} " if self.number < self.of else "all " if self.of > 1 else ""
        return number + self.sign


def not_finite(stats: TensorStats) -> Iterator[NotFinite]:
    """Yield the non-finite values, the worst first."""
    if stats.nan:
        yield NotFinite("nan", stats.nan, stats.count, "NaN")
    # An infinite complex number has no single sign.
    plus = "" if stats.real is not None else "+"
    if stats.posinf:
        yield NotFinite("inf", stats.posinf, stats.count, f"{plus}Inf")
    if stats.neginf:
        yield NotFinite("inf", stats.neginf, stats.count, "-Inf", not is_mask(stats))


def is_mask(stats: TensorStats) -> bool:
    """Return whether the values are zeros and minus infinities, as in a mask that is added to scores."""
    return bool(stats.neginf) and not stats.nan and not stats.posinf and stats.min == stats.max == 0


def alarms_of(stats: TensorStats) -> list[NotFinite]:
    """Return the alarming values, the worst first."""
    return [one for one in not_finite(stats) if one.is_alarm]


def alarm_text(stats: TensorStats | None) -> str:
    """Return the alarming values in words: ``1 NaN, 2 +Inf``."""
    return ", ".join(one.text for one in alarms_of(stats)) if stats is not None else ""
