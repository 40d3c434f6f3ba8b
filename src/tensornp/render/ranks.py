"""Show weights, statistics and differences of all ranks of a job."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.models.entries.entry import NoSource, WeightEntry, shape_text
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut
from tensornp.models.outline.fold import folded
from tensornp.processes.merged import Drift, OnRanks, RankStats, RankWeights, ranks_text
from tensornp.render.layout.document import Document, Part, alarm_line, headline, small_print
from tensornp.render.layout.table import Table, TableRow, said_once
from tensornp.render.layout.words import first_lines
from tensornp.render.models.weights import MAX_ROWS, table_of
from tensornp.render.pictures.stats_line import stats_line_text

_CURE = "ask for a part of them, such as .weights('model.layers[0]')"
_MAX_LINES, _MAX_LINE = 10, 400
_MAX_ROWS = 100


def rank_weights_document(weights: RankWeights) -> Document:
    table, common, rest = table_of(folded(map(_entry, weights.values())), "", {}, MAX_ROWS, _CURE)
    differences = (cut(f"{name}: {note}", _MAX_LINE) for name, note in weights.differences().items())
    head = [cut(weights.expression, MAX_SHOWN), weights.told, *said_once(common, is_whole=True)]
    return Document(
        (
            headline(" · ".join(head)),
            *map(alarm_line, first_lines(differences, _MAX_LINES)),
            _silent(weights.silent),
            table,
            small_print(rest),
        )
    )


def _entry(one: OnRanks) -> WeightEntry:
    facts = one.facts
    return WeightEntry(
        one.name, facts.kind, facts.shape, facts.dtype, facts.nbytes, NoSource(facts.device), "",
        ", ".join(filter(None, (facts.layout, one.note))), tied_to=(facts.tied_to,) if facts.tied_to else (),
    )  # fmt: skip


def _silent(reasons: Mapping[Any, str]) -> Part:
    return small_print(
        *first_lines((cut(why, _MAX_LINE) for why in reasons.values()), _MAX_LINES, "more; .silent has all")
    )


def rank_stats_document(stats: RankStats) -> Document:
    facts = stats.facts
    said = [stats.name]
    if facts is not None:
        said += [facts.kind, shape_text(facts.shape, facts.kind), facts.dtype, facts.device, facts.layout, stats.scope]
    else:
        said.append("no rank has told its values")
    nonfinite = (f"{text} on {ranks_text([rank])}" for rank, text in stats.nonfinite.items())
    alarms = [f"the tensor on {ranks_text(stats.differing)} is not that of the others"] if stats.differing else []
    return Document(
        (
            headline(" · ".join(cut(one, MAX_TOLD) for one in said if one)),
            *(alarm_line(cut(one, MAX_TOLD)) for one in alarms),
            *map(alarm_line, first_lines(nonfinite, _MAX_LINES)),
            small_print(f"{counted(stats.count, 'element')} · {stats_line_text(stats)}" if facts is not None else ""),
            _silent(stats.silent),
        )
    )


def drift_document(drift: Drift) -> Document:
    rows = [TableRow((cut(name, MAX_SHOWN), said)) for name, said in islice(drift.items(), _MAX_ROWS)]
    more = f"… and {len(drift) - _MAX_ROWS:,} more differ" if len(drift) > _MAX_ROWS else ""
    return Document(
        (
            headline(f"{cut(drift.expression, MAX_SHOWN)} · {drift.told}"),
            _silent(drift.silent),
            Table(("name", "what"), tuple(rows)),
            small_print(more),
        )
    )
