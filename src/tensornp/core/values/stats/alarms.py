"""What of a tensor's values gives cause for alarm, decided in this one place for every view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tensornp.core.values.stats.record import TensorStats


class NotFinite(NamedTuple):
    """Values that are not finite: what they are looked for as, how many of which, and whether that is an alarm."""

    goal: str
    number: int
    of: int
    sign: str
    is_alarm: bool = True

    @property
    def text(self) -> str:
        """In two words: ``3 NaN``, ``all NaN``; of one element, in one."""
        number = f"{self.number:,} " if self.number < self.of else "all " if self.of > 1 else ""
        return number + self.sign


def not_finite(stats: TensorStats) -> Iterator[NotFinite]:
    """Yield the values that are not finite, the worst first."""
    if stats.nan:
        yield NotFinite("nan", stats.nan, stats.count, "NaN")
    # What a complex number that is infinite has as its sign is told by no one sign.
    plus = "" if stats.real is not None else "+"
    if stats.posinf:
        yield NotFinite("inf", stats.posinf, stats.count, f"{plus}Inf")
    if stats.neginf:
        yield NotFinite("inf", stats.neginf, stats.count, "-Inf", not is_mask(stats))


def is_mask(stats: TensorStats) -> bool:
    """Return whether minus infinities are those of a mask that is added to scores: all else are zeros."""
    return bool(stats.neginf) and not stats.nan and not stats.posinf and stats.min == stats.max == 0


def alarms_of(stats: TensorStats) -> list[NotFinite]:
    """Return what gives cause for alarm, the worst first."""
    return [one for one in not_finite(stats) if one.is_alarm]


def alarm_text(stats: TensorStats | None) -> str:
    """Return that in a few words: ``1 NaN, 2 +Inf``; empty where nothing does."""
    return ", ".join(one.text for one in alarms_of(stats)) if stats is not None else ""
