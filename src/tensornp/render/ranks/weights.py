"""The weights of all ranks as one table with repeated names folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import NoSource
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.outline.fold import folded
from tensornp.processes.asking import ranks_text
from tensornp.processes.merged import OnRanks, RankWeights
from tensornp.render.layout.document import Alarm, Both, Document, Lines
from tensornp.render.layout.style import ALARM_TEXT, HEADING
from tensornp.render.layout.table import said_once
from tensornp.render.models.weights import MAX_ROWS, table_of

_CURE = "ask for a part of them, such as .weights('model.layers[0]')"
_IN_HEADING = 2
_MAX_LINES = 10
_MAX_LINE = 400


def rank_weights_document(weights: RankWeights) -> Document:
    """Return agreements, differences and silent ranks over a table."""
    table, common, rest = table_of(folded(map(_entry, weights.values())), "", {}, MAX_ROWS, _CURE)
    found = [cut(one, _MAX_LINE) for one in islice(weights.differences(), _MAX_LINES + 1)]
    head = " · ".join([cut(weights.expression, MAX_SHOWN), weights.told])
    beside = "".join(f" · {one}" for one in [*_sizes(weights), *said_once(common, is_whole=True)])
    in_heading = found if len(found) <= _IN_HEADING and weights.agree else []
    lines = [] if in_heading else found
    return Document(
        (
            _heading(head, in_heading, beside),
            *(Alarm(one) if weights.agree else Lines((one,)) for one in lines[:_MAX_LINES]),
            Lines(("… and more",) if len(found) > _MAX_LINES else ()),
            silent_lines(weights._answers.silent_told),
            table,
            Lines((rest,)),
        )
    )


def _heading(head: str, differences: list[str], beside: str) -> Both:
    said = "".join(f"; {one}" for one in differences)
    alarms = "".join(f' <span style="{ALARM_TEXT}">{escape(one)}</span>' for one in differences)
    return Both(head + said + beside, f'<div style="{HEADING}">{escape(head)}{alarms}{escape(beside)}</div>')


def _sizes(weights: RankWeights) -> Iterator[str]:
    """Yield the number of elements and the bytes of all ranks and of each."""
    if len(weights.groups) == 1:
        yield counted(weights.groups[0].parameters, "element")
    held = [nbytes for group in weights.groups for nbytes in group.nbytes]
    if held:
        low, high = format_nbytes(min(held)), format_nbytes(max(held))
        each = f"{low} on each rank" if low == high else f"{low} to {high} on a rank"
        yield f"{format_nbytes(sum(held))} in all, {each}" if len(held) > 1 else low


def _entry(one: OnRanks) -> WeightEntry:
    """Return a weight as the table of weights shows it."""
    facts = one.facts
    here = f"on {ranks_text(one.ranks)}" if one.lacking else ""
    others = [rank for _, ranks in one.variants[1:] for rank in ranks]
    other = f"different on {ranks_text(others)}" if others else ""
    return WeightEntry(
        one.name, facts.kind, facts.shape, facts.dtype, facts.nbytes, NoSource(facts.device), "",
        ", ".join(filter(None, (facts.layout, here, other))), tied_to=(facts.tied_to,) if facts.tied_to else (),
    )  # fmt: skip


def silent_lines(told: Sequence[str]) -> Lines:
    """Return who has not answered and why, the first of them."""
    said = [cut(why, _MAX_LINE) for why in told]
    more = f"… and {len(said) - _MAX_LINES:,} more; .silent has all" if len(said) > _MAX_LINES else ""
    return Lines((*said[:_MAX_LINES], more))
