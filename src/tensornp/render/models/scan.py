"""The findings of a scan, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.core.values.stats.record import ALL, alarm_text
from tensornp.models.module_view import ModuleView
from tensornp.models.names.quoted import MAX_SHOWN, cut, cut_inside
from tensornp.models.scan.findings import ALARM_RANK, PLAIN_RANK, Finding, by_kind
from tensornp.models.scan.table import ScanTable
from tensornp.render.layout.document import Document, Part, alarm_line, headline, small_print
from tensornp.render.layout.table import Table, TableRow, without_empty
from tensornp.render.layout.words import listed
from tensornp.render.models.weights import weights_document
from tensornp.render.pictures.stats_line import number_text

MAX_ROWS = 40
"""Weights with findings that are listed."""
MAX_FAILED = 10
"""Weights that could not be read, of which it is told why."""
MAX_NAMED = 3
"""Weights of which the same is found that are named."""
_MAX_TEXT = 400
_HEADINGS = ("name", "min", "max", "mean", "std", "zeros", "finding")
_ALWAYS = ("name",)


def scan_document(
    found: ScanTable, has_all: tuple[str, str] = (".to_frame() of the scan", ".failed of the scan")
) -> Document:
    """Return totals, non-finite values, findings and unread weights.

    `has_all` names the places that have all findings and all unread weights.
    """
    every = {name: found.findings(name) for name in islice(found, found.num_alarms + found.num_quiet)}
    alarms = [(kind, names) for kind, names in by_kind(every.items()).items() if kind.is_alarm]
    plain = {
        name: None
        for name, findings in every.items()
        if found[name].scope == ALL and all(one.rank == PLAIN_RANK for one in findings)
    }
    odd = [name for name in every if name not in plain]
    rows = [_row(found, name, every[name]) for name in odd[:MAX_ROWS]]
    table = without_empty(Table(_HEADINGS, tuple(rows)), _ALWAYS)
    calm = [_calm(found, bool(plain))] if found and not odd else []
    said = (*calm, *_said(found, len(odd[MAX_ROWS:]), list(plain), has_all))
    loud = (alarm_line(kind.with_scope(len(names)), f": {_names(names)}") for kind, names in alarms)
    return Document((headline(" · ".join(found.told())), *loud, table, small_print(*said)))


def _row(found: ScanTable, name: str, findings: list[Finding]) -> TableRow:
    stats = found[name]
    text = cut("; ".join(one.text for one in findings if one.rank >= ALARM_RANK), _MAX_TEXT)
    figures = (stats.min, stats.max, stats.mean, stats.std)
    texts = [number_text(figure) if figure is not None else "" for figure in figures]
    zeros = f"{stats.zeros:,}" if stats.zeros else ""
    return TableRow((_names([name]), *texts, zeros, text), alarm=alarm_text(stats))


def _names(names: list[str]) -> str:
    return listed([cut_inside(name, MAX_SHOWN) or "''" for name in names], MAX_NAMED)


def _calm(found: ScanTable, has_plain: bool) -> str:
    read = found.distinct()
    elements = counted(sum(stats.count for _, stats in read), "element")
    size = format_nbytes(sum(entry.nbytes for entry, _ in read))
    return f"nothing {'else ' if has_plain else ''}stands out of {elements}, {size}"


def _said(found: ScanTable, num_hidden: int, plain: list[str], has_all: tuple[str, str]) -> Iterator[str]:
    if num_hidden:
        yield f"… {counted(num_hidden, 'more weight')} with findings; {has_all[0]} has all"
    if plain:
        yield f"{len(plain):,} all ones or all zeros: {_names(plain)}"
    yield from (f"not all is listed: {legible(why)}" for why in found.not_listed[:MAX_FAILED])
    for name, why in islice(found.failed.items(), MAX_FAILED):
        yield f"{cut(name, MAX_SHOWN) or repr('')} was not read: {cut(why, _MAX_TEXT)}"
    if len(found.failed) > MAX_FAILED:
        more = counted(len(found.failed) - MAX_FAILED, "more weight")
        yield f"… {more} could not be read; {has_all[1]} tells why"


def module_document(view: ModuleView) -> Document:
    """Return the table of a module's weights, which a live tree can replace."""
    alarms = {name: alarm_text(stats) for name, stats in view.alarms.items()}
    return weights_document(view.explorer, alarms, tuple(_findings(view)), class_name=view.class_name)


def _findings(view: ModuleView) -> Iterator[Part]:
    at_least = "at least " if partly_read(view) else ""
    for kind, names in by_kind(view.findings().items()).items():
        shown = listed([cut(name, MAX_SHOWN) or "''" for name in names], MAX_NAMED)
        yield alarm_line(at_least + kind.with_scope(len(names)), f": {shown}")
    if partly_read(view):
        yield small_print(partly_read(view))


def partly_read(view: ModuleView) -> str:
    """Return the number of weights that were read in words; empty if all were."""
    if view.num_read == view.num_floats or not view.num_read:
        return ""
    read = f"{view.num_read:,} of {view.num_floats:,} weights of floats"
    return f"NaN was looked for in {read}; Read values or %tensorstats looks in all"
