"""The weights of all ranks as one table with repeated names folded."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.processes.rolls import Silent
from tensornp.processes.summary import RankSummary
from tensornp.processes.weights import RankWeights
from tensornp.render.layout.document import Alarm, Both, Document, Lines
from tensornp.render.layout.style import ALARM_TEXT, HEADING
from tensornp.render.layout.table import said_once
from tensornp.render.models.weights import MAX_ROWS, table_of

_CURE = "ask for a part of them, such as .weights('model.layers[0]')"
_IN_HEADING = 2
_MAX_LINES = 10
_MAX_LINE = 400


def rank_weights_document(summary: RankSummary) -> Document:
    """Return in what ranks agree, in what not, and who has not answered, over a table."""
    weights = summary.weights
    table, common, rest = table_of(summary.rows, "", {}, MAX_ROWS, _CURE)
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
            silent_lines(weights.silent),
            table,
            Lines((rest,)),
        )
    )


def _heading(head: str, differences: list[str], beside: str) -> Both:
    said = "".join(f"; {one}" for one in differences)
    alarms = "".join(f' <span style="{ALARM_TEXT}">{escape(one)}</span>' for one in differences)
    return Both(head + said + beside, f'<div style="{HEADING}">{escape(head)}{alarms}{escape(beside)}</div>')


def _sizes(weights: RankWeights) -> Iterator[str]:
    """Yield how many elements there are, and the bytes that all ranks hold together, and each."""
    if len(weights.groups) == 1:
        yield counted(weights.groups[0].parameters, "element")
    held = [nbytes for group in weights.groups for nbytes in group.nbytes]
    if held:
        low, high = format_nbytes(min(held)), format_nbytes(max(held))
        each = f"{low} on each rank" if low == high else f"{low} to {high} on a rank"
        yield f"{format_nbytes(sum(held))} in all, {each}" if len(held) > 1 else low


def silent_lines(silent: Silent) -> Lines:
    """Return who has not answered and why, the first of them."""
    said = [cut(why, _MAX_LINE) for why in silent.told]
    more = f"… and {len(said) - _MAX_LINES:,} more; .silent has all {len(silent):,}" if len(said) > _MAX_LINES else ""
    return Lines((*said[:_MAX_LINES], more))
