"""The time of the first and of a later card of every kind in the gallery, and of the refusals."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from forked import run
from gallery import KINDS
from side_by_side import table

CARD_MS, REFUSAL_MS = 50, 10
SLOWEST = 8


def report(*, quick: bool) -> Iterator[str]:
    """Yield two tables: the slowest cards, and the slowest refusals, each kind in a process of its own."""
    names = list(KINDS)[:: 10 if quick else 1]
    cards, refusals = [], []
    for name in names:
        how, what = run(measure, name)
        if how != "returned":
            yield f"{name}: {how} {what}"
            continue
        card, refusal = what
        cards.append((max(card), median(card), name))
        if refusal:
            refusals.append((max(refusal), median(refusal), name))
    yield from _tables("card", CARD_MS, cards)
    yield from _tables("refusal", REFUSAL_MS, refusals)


def _tables(what: str, claim_ms: float, figures: list[tuple[float, float, str]]) -> Iterator[str]:
    rows = [(name, f"{1e3 * worst:.2f} ms", f"{1e3 * middle:.2f} ms") for worst, middle, name in sorted(figures)[::-1]]
    yield table((f"slowest {what}s of {len(figures)}", "slowest", "median"), rows[:SLOWEST])
    holds = all(worst * 1e3 <= claim_ms for worst, _, _ in figures)
    yield f"claim: a {what} takes ≤ {claim_ms} ms: {'holds' if holds else 'DOES NOT HOLD'}"


def measure(name: str) -> tuple[list[float], list[float]]:
    """Return the seconds of each of some cards, and of each of some refusals of a kind that is refused."""
    from tensornp import TensornpError, to_numpy
    from tensornp.core.summary.card import summarize
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.render.tensor.card import tensor_html, tensor_text

    case = KINDS[name][1]()
    cards, refusals = [], []
    for _ in range(10):
        start = time.perf_counter()
        summary = summarize(case.tensor, DisplayOptions())
        tensor_text(summary), tensor_html(summary, DisplayOptions())
        cards.append(time.perf_counter() - start)
        if case.error is not None:
            start = time.perf_counter()
            try:
                to_numpy(case.tensor)
            except TensornpError:
                refusals.append(time.perf_counter() - start)
    return cards, refusals
