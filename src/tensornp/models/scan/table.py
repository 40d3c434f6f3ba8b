"""`ScanTable`: the statistics of each weight and its findings, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted
from tensornp.core.values.stats.record import ALL, SHARD, TensorStats, shards_told
from tensornp.errors import MissingLibraryError, NoSuchWeightError
from tensornp.models.entries.entry import WeightEntry, is_counter
from tensornp.models.names.quoted import closest, shown_name
from tensornp.models.outline.fold import folded
from tensornp.models.scan.findings import EQUAL_RANK, ODD_RANK, QUIET_RANK, UNRANKED, Finding, findings_of

_COLUMNS = "count nan posinf neginf zeros min max mean std norm scope".split()


class ScanTable(Mapping[str, TensorStats]):
    """A mapping from name to `TensorStats`, the worst first.

    Attributes
    ----------
    complete : bool
        Whether all weights were read, or said why not.
    failed : dict
        The reason of each weight that was not read, by name.
    num_alarms, num_quiet, num_left : int
        Weights with findings, with remarks alone, and those that a stopped scan did not read.
    not_listed : tuple of str
        Why weights are not even listed: a file of several is missing, or cannot be read.
    seconds : float
        How long the scan took.
    """

    def __init__(
        self, entries: Iterable[WeightEntry], found: Mapping[str, TensorStats | str], complete: bool, seconds: float
    ) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._numbers = {name: i for i, name in enumerate(self._entries)}
        self._stats = {name: one for name, one in found.items() if not isinstance(one, str)}
        self.failed = {name: one for name, one in found.items() if isinstance(one, str)}
        self.not_listed: tuple[str, ...] = ()
        self.complete, self.seconds = complete, seconds

    def __getitem__(self, name: str) -> TensorStats:
        if name in self:
            return self._stats[name]
        if not isinstance(name, str):
            raise NoSuchWeightError(f"statistics are taken by a name, not by {an_instance(name)}")
        why = f": {self.failed[name]}" if name in self.failed else closest(name, self._stats)
        raise NoSuchWeightError(f"there are no statistics of {shown_name(name)}{why}")

    def __iter__(self) -> Iterator[str]:
        ranks = self._ranks
        return iter(sorted(ranks, key=lambda name: (ranks[name], self._numbers[name])))

    def __len__(self) -> int:
        return len(self._stats)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._stats

    @property
    def _ranks(self) -> dict[str, int]:
        return {name: min(found, default=Finding(UNRANKED, "")).rank for name, found in self._every.items()}

    @property
    def num_alarms(self) -> int:
        return sum(rank < QUIET_RANK for rank in self._ranks.values())

    @property
    def num_quiet(self) -> int:
        return sum(QUIET_RANK <= rank < UNRANKED for rank in self._ranks.values())

    @property
    def num_left(self) -> int:
        return sum(name not in self._stats and name not in self.failed for name in self._entries)

    def distinct(self) -> list[tuple[WeightEntry, TensorStats]]:
        """Return weights with statistics, one for all names of the same elements."""
        some = {self._first_of(self._entries[name]): name for name in self._stats}
        return [(self._entries[name], self._stats[name]) for name in some.values()]

    def told(self) -> list[str]:
        """Return the numbers of a scan that begin its line, its table and the page."""
        quiet, left = self.num_quiet, self.num_left
        said = [
            counted(len(self), "weight"),
            counted(self.num_alarms, "finding") + (f", {counted(quiet, 'remark')}" if quiet else ""),
        ]
        if part := shards_told(one.scope for one in self._stats.values()):
            said.append(part)
        num_empty = sum(bool(self._entries[name].problem) for name in self.failed if name in self._entries)
        if num_empty:
            said.append(f"{num_empty:,} without values to read")
        if len(self.failed) > num_empty:
            said.append(f"{len(self.failed) - num_empty:,} could not be read")
        if not self.complete:
            said.append("stopped" + (f", {left:,} {'was' if left == 1 else 'were'} not read" if left else ""))
        return said

    def findings(self, name: str) -> list[Finding]:
        """Return the findings of a weight, the worst first, with the part that was read."""
        self[name]
        return self._every[name]

    @cached_property
    def _every(self) -> dict[str, list[Finding]]:
        """Return the findings of all weights: of each, among its siblings, and among those of equal content."""
        norms = {name: stats.norm for name, stats in self._stats.items() if stats.norm is not None}
        odd = _odd_ones((self._entries[name] for name in self._stats), norms)
        # Weights by fingerprint, one for all names of the same bytes; constant ones are equal to many others.
        alike: dict[str, dict[int, None]] = {}
        for name, stats in self._stats.items():
            if stats.fingerprint and stats.min != stats.max:
                alike.setdefault(stats.fingerprint, {})[self._first_of(self._entries[name])] = None
        names, found = list(self._entries), dict[str, list[Finding]]()
        for name, stats in self._stats.items():
            entry = self._entries[name]
            every = [*findings_of(entry, stats)]
            if name in odd:
                every.append(Finding(ODD_RANK, odd[name], "standing out among siblings"))
            others = sorted(alike.get(stats.fingerprint, {}).keys() - {self._first_of(entry)})
            if others:
                same = ", ".join(shown_name(names[number]) for number in others[:_MAX_NAMED])
                more = f" and {len(others) - _MAX_NAMED:,} more" if len(others) > _MAX_NAMED else ""
                every.append(Finding(EQUAL_RANK, f"the same values as {same}{more}", "with the same values"))
            # The table names shards once.
            of = "" if stats.scope == ALL or stats.scope.startswith(SHARD) else f" ({stats.scope})"
            found[name] = sorted(one._replace(text=one.text + of) for one in every)
        return found

    def _first_of(self, entry: WeightEntry) -> int:
        names = (entry.name, *entry.tied_to)
        return min(self._numbers[name] for name in names if name in self._numbers)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each weight; MissingLibraryError without pandas."""
        rows = (
            [*(getattr(stats, column) for column in _COLUMNS), "; ".join(one.text for one in self.findings(name))]
            for name, stats in self.items()
        )
        return frame_of(self, [*_COLUMNS, "findings"], rows)

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return f"<ScanTable of {', '.join(self.told())}>"


_MAX_NAMED = 2
"""Weights of equal content that a finding names."""
_MIN_WEIGHTS = 4
"""Fewest weights of which one can be odd: three others must agree."""
_MIN_TIMES = 4


def _odd_ones(entries: Iterable[WeightEntry], norms: Mapping[str, float]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in folded(entries):
        known = sorted((norms[one.name], one.name) for one in row.entries if one.name in norms)
        if is_counter(row.entries[0]) or len(known) < _MIN_WEIGHTS:
            continue
        *others, (top, name) = known
        usual = median(norm for norm, _ in others)
        # Beside zeros, whatever is not zero would be; and of two there is no one.
        if 0 < _MIN_TIMES * usual <= top and others[-1][0] < _MIN_TIMES * usual:
            found[name] = f"its norm is {top / usual:.3g} times the median of its {len(others):,} siblings"
    return found


def frame_of(names: Iterable[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a DataFrame with a row for each name; MissingLibraryError without pandas."""
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingLibraryError("a frame needs pandas; install it, or take the mapping as it is") from None
    return pandas.DataFrame(list(rows), columns=list(columns), index=pandas.Index(list(names), name="name"))
