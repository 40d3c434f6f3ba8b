"""What a page shows of the weights of all ranks: rows of them, in which names that repeat are folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import NoSource
from tensornp.models.outline.fold import Row, folded
from tensornp.processes.rolls import ranks_text
from tensornp.processes.weights import OnRanks, RankWeights


@dataclass(frozen=True, slots=True)
class RankSummary:
    """The weights of all ranks, and the rows that are shown of them."""

    weights: RankWeights
    rows: list[Row]


def summarize_ranks(weights: RankWeights, options: object = None) -> RankSummary:
    """Return the rows; to fold a hundred thousand names takes seconds, and text and page share them."""
    return RankSummary(weights, folded(map(_entry, weights.values())))


def _entry(one: OnRanks) -> WeightEntry:
    """Return a weight as the table of weights shows it."""
    facts = one.facts
    here = ranks_text(one.ranks) if one.lacking else ""
    other = f"other on {ranks_text(_others(one))}" if len(one.variants) > 1 else ""
    note = ", ".join(filter(None, (facts.layout, f"on {here}" if here else "", other)))
    return WeightEntry(
        one.name, facts.kind, facts.shape, facts.dtype, facts.nbytes, NoSource(facts.device), "", note,
        tied_to=(facts.tied_to,) if facts.tied_to else (),
    )  # fmt: skip


def _others(one: OnRanks) -> list[Any]:
    return [rank for facts, ranks in one.variants if facts != one.facts for rank in ranks]
