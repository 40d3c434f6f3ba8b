"""Findings of many weights by their kind, the most serious first, so that what is alike is said once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.models.scan.findings import ALARM_RANK, Finding


class Kind(NamedTuple):
    """What stands out of several weights: how bad it is, and what it is; kinds are ordered by both."""

    rank: int
    what: str

    @property
    def is_alarm(self) -> bool:
        """Whether it is that values are not finite."""
        return self.rank < ALARM_RANK

    def with_scope(self, number: int) -> str:
        """Return that so many weights have it: ``2 weights have NaN``, ``125 constant, as initialized``."""
        if self.is_alarm:
            return f"{counted(number, 'weight')} {'has' if number == 1 else 'have'} {self.what}"
        return f"{number:,} {self.what}"


def kind_of(findings: Sequence[Finding]) -> Kind | None:
    """Return the kind of the worst finding of a weight; None where there is none."""
    worst = min(findings, default=None)
    return Kind(worst.rank, worst.what) if worst is not None else None


def by_kind(found: Iterable[tuple[str, Sequence[Finding]]]) -> dict[Kind, list[str]]:
    """Return the names of weights by the kind of their worst finding, the most serious kind first."""
    kinds: dict[Kind, list[str]] = {}
    for name, findings in found:
        if (kind := kind_of(findings)) is not None:
            kinds.setdefault(kind, []).append(name)
    return dict(sorted(kinds.items()))
