"""Statements timed side by side, in interleaved rounds: a noisy machine then disturbs all of them alike."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
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
        """Return the spread of at least one figure."""
        figures = list(figures)
        tenths = quantiles(figures, n=10, method="inclusive") if len(figures) > 1 else figures * 9
        return cls(tenths[0], tenths[4], tenths[8])

    def __str__(self) -> str:
        low, median, high = map(_readable, (self.low, self.median, self.high))
        return f"{median} ({low}–{high})"

    def in_seconds(self) -> str:
        """Return the spread of figures in seconds, in the unit that reads best: ``412 µs (398–450)``."""
        factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if self.median * f >= 1), (1e6, "µs"))
        low, median, high = (_readable(figure * factor) for figure in (self.low, self.median, self.high))
        return f"{median} {unit} ({low}–{high})"


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


def ratio(seconds: Sequence[float], base: Sequence[float]) -> Spread:
    """Return how many times as long as `base` it took, round by round."""
    return Spread.of(a / b for a, b in zip(seconds, base, strict=True))


def verdict(claim: float, measured: Spread) -> str:
    """Return whether the median keeps a claim that it is at most `claim`: a sentence, for nothing fails by speed."""
    return f"≤ {claim:g}: {'holds' if measured.median <= claim else 'DOES NOT HOLD'}"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table whose columns are aligned in plain text too."""
    cells = [[str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head, *body = (_line(row, widths) for row in cells)
    return "\n".join([head, _line(["-" * width for width in widths], widths), *body])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _readable(figure: float) -> str:
    """Return a figure with two or three digits that count: 0.0041, 0.41, 4.12, 41.2, 4120."""
    if figure < 0.1:
        return f"{figure:.2g}"
    return f"{figure:.{max(0, 3 - len(str(int(figure))))}f}"
