"""The weights of all ranks as one table with repeated names folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import NoSource
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.outline.fold import folded
from tensornp.processes.merged import OnRanks, RankWeights
from tensornp.render.layout.document import Alarm, Document, Heading, Lines
from tensornp.render.layout.table import said_once
from tensornp.render.models.weights import MAX_ROWS, table_of

_CURE = "ask for a part of them, such as .weights('model.layers[0]')"
_MAX_LINES = 10
_MAX_LINE = 400


def rank_weights_document(weights: RankWeights) -> Document:
    """Return differences and silent ranks over a table."""
    table, common, rest = table_of(folded(map(_entry, weights.values())), "", {}, MAX_ROWS, _CURE)
    differences = [cut(f"{name}: {note}", _MAX_LINE) for name, note in weights.differences().items()]
    head = [cut(weights.expression, MAX_SHOWN), weights.told, *_sizes(weights), *said_once(common, is_whole=True)]
    more = f"… and {len(differences) - _MAX_LINES:,} more" if len(differences) > _MAX_LINES else ""
    return Document(
        (
            Heading(" · ".join(head)),
            *map(Alarm, differences[:_MAX_LINES]),
            Lines((more,)),
            silent_lines(weights.answers.silent_lines),
            table,
            Lines((rest,)),
        )
    )


def _sizes(weights: RankWeights) -> Iterator[str]:
    """Yield the number of elements and the bytes of all ranks and of each."""
    if len(set(weights.num_parameters.values())) == 1:
        yield counted(next(iter(weights.num_parameters.values())), "element")
    held = list(weights.nbytes.values())
    if held:
        low, high = format_nbytes(min(held)), format_nbytes(max(held))
        each = f"{low} on each rank" if low == high else f"{low} to {high} on a rank"
        yield f"{format_nbytes(sum(held))} in all, {each}" if len(held) > 1 else low


def _entry(one: OnRanks) -> WeightEntry:
    """Return a weight as the table of weights shows it."""
    facts = one.facts
    return WeightEntry(
        one.name, facts.kind, facts.shape, facts.dtype, facts.nbytes, NoSource(facts.device), "",
        ", ".join(filter(None, (facts.layout, one.note))), tied_to=(facts.tied_to,) if facts.tied_to else (),
    )  # fmt: skip


def silent_lines(told: Sequence[str]) -> Lines:
    """Return who has not answered and why, the first of them."""
    said = [cut(why, _MAX_LINE) for why in told]
    more = f"… and {len(said) - _MAX_LINES:,} more; .silent has all" if len(said) > _MAX_LINES else ""
    return Lines((*said[:_MAX_LINES], more))
