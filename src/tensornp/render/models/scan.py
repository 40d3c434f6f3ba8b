"""What a scan has found, the worst first, and what it could not read: as text and as static HTML."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted, format_nbytes
from tensornp.core.values.reading.scopes import ALL
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.scan.findings import PLAIN_RANK
from tensornp.models.scan.table import ScanTable
from tensornp.render.layout.document import Document, Heading, Lines
from tensornp.render.layout.table import Table, TableRow, without_empty
from tensornp.render.layout.words import listed
from tensornp.render.pictures.stats_line import number_text

MAX_ROWS = 40
"""Weights with findings that are listed."""
MAX_FAILED = 10
"""Weights that could not be read, of which it is told why."""
MAX_NAMED = 3
"""Weights of ones or zeros that are named."""
_MAX_TEXT = 400
_SHORTEST_S = 0.1
_HEADINGS = ("name", "finding", "min", "max", "mean", "std", "zeros")
_ALWAYS = ("name", "finding")


def scan_document(found: ScanTable) -> Document:
    """Return the numbers over a table of what stands out, and under it what could not be read."""
    num_alarms = found.num_alarms
    every = list(islice(found, num_alarms + found.num_quiet))
    whole = [name for name in every if found[name].scope == ALL]
    plain = [name for name in whole if all(one.rank == PLAIN_RANK for one in found.findings(name))]
    is_plain = set(plain)
    names = [name for name in every if name not in is_plain]
    rows: list[TableRow] = []
    for name in names[:MAX_ROWS]:
        findings = found.findings(name)
        is_first_quiet = bool(rows) and len(rows) == num_alarms
        text = cut("; ".join(one.text for one in findings), _MAX_TEXT)
        rows.append(TableRow((cut(name, MAX_SHOWN) or "''", text, *_figures(found, name)), (), is_first_quiet))
    table = without_empty(Table(_HEADINGS, tuple(rows)), _ALWAYS)
    calm = [_calm(found, bool(plain))] if found and not rows else []
    said = (*calm, *_said(found, len(names), plain))
    return Document((Heading(" · ".join(found.told())), table, Lines(said)))


def _calm(found: ScanTable, has_plain: bool) -> str:
    """Return that nothing stands out of what was read, how much that was, and the figures of all of it."""
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


def _figures(found: ScanTable, name: str) -> Iterator[str]:
    """Yield the last columns; of what has no finite element, nothing."""
    stats = found[name]
    for figure in (stats.min, stats.max, stats.mean, stats.std):
        yield number_text(figure) if figure is not None else ""
    yield f"{stats.zeros:,}" if stats.zeros else ""


def _said(found: ScanTable, num_found: int, plain: list[str]) -> Iterator[str]:
    if num_found > MAX_ROWS:
        yield f"… {counted(num_found - MAX_ROWS, 'more weight')} with findings; .to_frame() of the scan has all"
    if plain:
        names = listed([cut(name, MAX_SHOWN) for name in plain], MAX_NAMED)
        yield f"{counted(len(plain), 'weight')} of ones or zeros throughout: {names}"
    yield from (f"not all is listed: {legible(why)}" for why in found.not_listed[:MAX_FAILED])
    for name, why in islice(found.failed.items(), MAX_FAILED):
        yield f"{cut(name, MAX_SHOWN) or repr('')} was not read: {cut(why, _MAX_TEXT)}"
    if len(found.failed) > MAX_FAILED:
        more = counted(len(found.failed) - MAX_FAILED, "more weight")
        yield f"… {more} could not be read; .failed of the scan tells why"
