"""Statements timed side by side, in interleaved rounds: a noisy machine then disturbs all of them alike."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from timeit import Timer
from typing import Any

SLICE_S = 0.005
"""Seconds that one statement is repeated for in a round; a slow one runs once."""
PATIENCE_S = 90
"""Seconds after which no further round is begun."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some figures, between their 10th and 90th percentile."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, figures: Iterable[float]) -> Spread:
        figures = list(figures)
        tenths = quantiles(figures, n=10, method="inclusive") if len(figures) > 1 else figures * 9
        return cls(tenths[0], tenths[4], tenths[8])

    def __str__(self) -> str:
        low, median, high = map(_readable, (self.low, self.median, self.high))
        return median if low == high else f"{median} ({low}–{high})"

    def in_unit(self, unit: str) -> str:
        """Return the spread with its unit; of seconds, with the one that reads best: ``412 µs (398–450)``."""
        if unit != "s":
            return f"{self} {unit}"
        factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if self.median * f >= 1), (1e6, "µs"))
        low, median, high = (_readable(figure * factor) for figure in (self.low, self.median, self.high))
        return f"{median} {unit}" if low == high else f"{median} {unit} ({low}–{high})"


def interleave(statements: Mapping[str, str], names: dict[str, Any], *, rounds: int) -> dict[str, list[float]]:
    """Return the seconds that each statement takes, one figure for each round, by the key of the statement.

    In a round each statement is repeated for about `SLICE_S`, without garbage collection; every second round runs in
    the opposite order. Each statement runs before, unmeasured, so that imports and caches are not counted.

    Parameters
    ----------
    statements : mapping of str to str
        Python statements, as for `timeit`.
    names : dict
        The global names that the statements use.
    rounds : int
        Rounds at most; fewer where they take longer than `PATIENCE_S` together, but at least 1.
    """
    timers = {key: Timer(statement, globals=names) for key, statement in statements.items()}
    repeats = {key: _repeats(timer) for key, timer in timers.items()}
    seconds: dict[str, list[float]] = {key: [] for key in timers}
    order, end = list(timers), time.monotonic() + PATIENCE_S
    for _ in range(rounds):
        for key in order:
            seconds[key].append(timers[key].timeit(repeats[key]) / repeats[key])
        order.reverse()
        if time.monotonic() > end:
            break
    return seconds


def _repeats(timer: Timer) -> int:
    """Return how often a statement runs in `SLICE_S`, told from its second run."""
    timer.timeit(1)
    return max(1, round(SLICE_S / timer.timeit(1)))


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table: what was measured, beside what, and what is claimed of it.

    Attributes
    ----------
    what : str
        What was measured.
    own : Spread
        In `unit`.
    unit : str
        "s", or what else is counted, such as "GB/s", "MiB", "%".
    beside : str
        What it is compared with: another library, the naive way, or the least that it could cost.
    other : Spread or None
        What that has, in the same unit.
    times : Spread or None
        How many times as long as that it takes, round by round.
    at_most : float or None
        What is claimed: of `times` if there are any, else of `own`.
    """

    what: str
    own: Spread
    unit: str = "s"
    beside: str = ""
    other: Spread | None = None
    times: Spread | None = None
    at_most: float | None = None

    @property
    def claimed(self) -> Spread:
        """What the claim speaks of."""
        return self.own if self.times is None else self.times

    @property
    def verdict(self) -> str:
        """Whether the median keeps the claim: words, for nothing fails by speed."""
        if self.at_most is None:
            return ""
        limit = _readable(self.at_most) if self.times else Spread.of([self.at_most]).in_unit(self.unit)
        return f"≤ {limit}: {'holds' if self.claimed.median <= self.at_most else 'DOES NOT HOLD'}"

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            self.own.in_unit(self.unit),
            self.beside,
            "" if self.other is None else self.other.in_unit(self.unit),
            "" if self.times is None else str(self.times),
            self.verdict,
        )


HEADINGS = ("measured", "tensornp", "beside", "which has", "times as long", "claim")


def timed(
    what: str,
    own: Sequence[float],
    beside: str = "",
    other: Sequence[float] = (),
    *,
    at_most: float | None = None,
    gigabytes: float = 0,
) -> Figure:
    """Return the figure of seconds, beside those of another in the same rounds; as speed, if it read `gigabytes`."""
    times = Spread.of(a / b for a, b in zip(own, other, strict=True)) if other else None
    unit = "GB/s" if gigabytes else "s"
    spreads = [Spread.of(gigabytes / s if gigabytes else s for s in seconds) for seconds in (own, other) if seconds]
    return Figure(what, spreads[0], unit, beside, spreads[1] if other else None, times, at_most)


def peak_mib(call: Callable[[], object]) -> Spread:
    """Return the MiB that NumPy and Python take anew for a call, when they have taken most."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Spread.of([peak / 2**20])


def table(figures: Iterable[Figure]) -> str:
    """Return a Markdown table whose columns are aligned in plain text too."""
    cells = [HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head, *body = (_line(row, widths) for row in cells)
    return "\n".join([head, _line(["-" * width for width in widths], widths), *body])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _readable(figure: float) -> str:
    """Return a figure with two or three digits that count: 0.0041, 0.41, 4.12, 41.2, 4,120."""
    if figure >= 1000:
        return f"{figure:,.0f}"
    if figure < 0.1:
        return f"{figure:.2g}"
    return f"{figure:.{max(0, 3 - len(str(int(figure))))}f}"
