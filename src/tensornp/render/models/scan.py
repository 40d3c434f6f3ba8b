"""The findings of a scan, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.core.values.scopes import ALL
from tensornp.core.values.stats.record import TensorStats, alarm_text, sum_of
from tensornp.models.names.quoted import MAX_SHOWN, cut, cut_inside
from tensornp.models.scan.findings import ALARM_RANK, EQUAL_RANK, PLAIN_RANK, QUIET_RANK, Finding, by_kind
from tensornp.models.scan.table import ScanTable
from tensornp.render.layout.document import Alarm, Document, Heading, Lines
from tensornp.render.layout.table import Table, TableRow, without_empty
from tensornp.render.layout.words import listed
from tensornp.render.pictures.stats_line import number_text

MAX_ROWS = 40
"""Weights with findings that are listed."""
MAX_FAILED = 10
"""Weights that could not be read, of which it is told why."""
MAX_NAMED = 3
"""Weights of which the same is found that are named."""
MAX_ALIKE = 3
"""Weights of which the same is found that have a row each."""
_MAX_TEXT = 400
_SHORTEST_S = 0.1
_HEADINGS = ("name", "min", "max", "mean", "std", "zeros", "finding")
_ALWAYS = ("name",)


def scan_document(
    found: ScanTable, has_all: tuple[str, str] = (".to_frame() of the scan", ".failed of the scan")
) -> Document:
    """Return totals, non-finite values, the table of findings, and unread weights.

    `has_all` says where the rest is of what is too much for a page: of the findings, and of why something was not read.
    """
    every = {name: found.findings(name) for name in islice(found, found.num_alarms + found.num_quiet)}
    alarms = [(kind, names) for kind, names in by_kind(every.items()).items() if kind.is_alarm]
    plain = [name for name, findings in every.items() if _is_plain(found[name], findings)]
    is_plain = set(plain)
    groups = _alike(found, {name: findings for name, findings in every.items() if name not in is_plain})
    table = without_empty(Table(_HEADINGS, tuple(_rows(found, groups[:MAX_ROWS]))), _ALWAYS)
    calm = [_calm(found, bool(plain))] if found and not groups else []
    said = (*calm, *_said(found, sum(len(group.names) for group in groups[MAX_ROWS:]), plain, has_all))
    loud = (Alarm(kind.with_scope(len(names)), f": {_names(names)}") for kind, names in alarms)
    return Document((Heading(" · ".join(found.told())), *loud, table, Lines(said)))


class _Group(NamedTuple):
    """Weights with the same findings."""

    names: list[str]
    findings: list[Finding]


def _alike(found: ScanTable, every: dict[str, list[Finding]]) -> list[_Group]:
    """Group weights with equal findings in their order; non-finite ones stay alone."""
    groups: dict[Any, _Group] = {}
    for name, findings in every.items():
        kinds = tuple(one.what for one in findings)
        is_equal = any(one.rank == EQUAL_RANK for one in findings)
        alone = name if findings[0].rank < ALARM_RANK else ""
        key = kinds, alone, found[name].fingerprint if is_equal else ""
        groups.setdefault(key, _Group([], findings)).names.append(name)
    return [one for group in groups.values() for one in _unfolded(group, every)]


def _unfolded(group: _Group, every: dict[str, list[Finding]]) -> list[_Group]:
    """Return a group, or its weights alone where they are few.

    Of what has the same values, once is enough.
    """
    if len(group.names) > MAX_ALIKE or group.findings[0].rank == EQUAL_RANK:
        return [group]
    return [_Group([name], every[name]) for name in group.names]


def _rows(found: ScanTable, groups: list[_Group]) -> Iterator[TableRow]:
    """Yield a row for each group: names, findings and figures."""
    before = QUIET_RANK
    for names, findings in groups:
        stats = found[names[0]]
        if len(names) > 1:
            stats = sum_of(replace(found[name], distribution=None) for name in names)
            told = [f"{len(names):,} {findings[0].what}", *(one.what for one in findings[1:])]
        else:
            told = [one.text for one in findings if one.rank >= ALARM_RANK]
        cells = (_names(names), *_figures(stats), cut("; ".join(told), _MAX_TEXT))
        begins_group = before < QUIET_RANK <= findings[0].rank
        yield TableRow(cells, (), begins_group, alarm=alarm_text(stats))
        before = findings[0].rank


def _names(names: list[str]) -> str:
    return listed([cut_inside(name, MAX_SHOWN) or "''" for name in names], MAX_NAMED)


def _is_plain(stats: TensorStats, findings: list[Finding]) -> bool:
    return stats.scope == ALL and all(one.rank == PLAIN_RANK for one in findings)


def _calm(found: ScanTable, has_plain: bool) -> str:
    """Return the sentence of a scan without findings, with its figures."""
    read = found.distinct()
    every = [stats for _, stats in read]
    lows = [stats.min for stats in every if stats.min is not None]
    highs = [stats.max for stats in every if stats.max is not None]
    time = f"{found.seconds:,.1f} s" if found.seconds >= _SHORTEST_S else "less than 0.1 s"
    elements = counted(sum(stats.count for stats in every), "element")
    said = [
        f"nothing {'else ' if has_plain else ''}stands out of {elements}",
        format_nbytes(sum(entry.nbytes for entry, _ in read)), f"read in {time}",
        f"from {number_text(min(lows))} to {number_text(max(highs))}" if lows else "",
        counted(sum(stats.zeros for stats in every), "zero"),
    ]  # fmt: skip
    return ", ".join(filter(None, said))


def _figures(stats: TensorStats) -> Iterator[str]:
    """Yield the last columns, which are empty without a finite element."""
    for figure in (stats.min, stats.max, stats.mean, stats.std):
        yield number_text(figure) if figure is not None else ""
    yield f"{stats.zeros:,}" if stats.zeros else ""


def _said(found: ScanTable, num_hidden: int, plain: list[str], has_all: tuple[str, str]) -> Iterator[str]:
    if num_hidden:
        yield f"… {counted(num_hidden, 'more weight')} with findings; {has_all[0]} has all"
    if plain:
        yield f"{len(plain):,} constant, as initialized: {_names(plain)}"
    yield from (f"not all is listed: {legible(why)}" for why in found.not_listed[:MAX_FAILED])
    for name, why in islice(found.failed.items(), MAX_FAILED):
        yield f"{cut(name, MAX_SHOWN) or repr('')} was not read: {cut(why, _MAX_TEXT)}"
    if len(found.failed) > MAX_FAILED:
        more = counted(len(found.failed) - MAX_FAILED, "more weight")
        yield f"… {more} could not be read; {has_all[1]} tells why"
