"""The time of the first and of a later card of every kind in the gallery, and of the refusals."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from forked import run
from gallery import KINDS
from side_by_side import Figure, Spread

CARD_S, REFUSAL_S = 0.05, 0.01
SLOWEST = 8


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield the slowest cards and the slowest refusals, each kind in a process of its own."""
    names = list(KINDS)[:: 10 if quick else 1]
    cards, refusals = [], []
    for name in names:
        how, what = run(measure, name)
        if how != "returned":
            yield f"{name}: {how} {what}"
            continue
        card, refusal = what
        cards.append((name, card))
        if refusal:
            refusals.append((name, refusal))
    yield from _slowest("card", CARD_S, cards)
    yield from _slowest("refusal", REFUSAL_S, refusals)


def _slowest(what: str, at_most: float, taken: list[tuple[str, list[float]]]) -> Iterator[Figure]:
    """Yield the figures of those of whose ten calls the slowest, the first as a rule, took longest."""
    for name, seconds in sorted(taken, key=lambda one: -max(one[1]))[:SLOWEST]:
        yield Figure(f"slowest {what} of {len(taken)}: {name}", Spread.of([max(seconds)]), at_most=at_most)


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
