"""The weights of a model as a table with repeated names folded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from html import escape
from itertools import chain, groupby, islice
from types import MappingProxyType
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.models.entries.relations import each_once
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut, cut_inside, file_name, names_above
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, STATE, number_told
from tensornp.models.outline.columns import COLUMNS, Column, cells_of
from tensornp.models.outline.fold import Row, rows_of, tree_of, with_modules
from tensornp.render.layout.document import Document, Part, alarm_line, headline, section, small_print
from tensornp.render.layout.style import QUIET
from tensornp.render.layout.table import Drawn, Table, TableRow, name_html, said_once, without_common, without_empty
from tensornp.render.layout.words import first_lines, listed

MAX_ROWS = 100
"""Rows that a page prints."""
MAX_WHOLE = 24
"""Rows up to which each state of an optimizer has its own."""
MAX_SAID = 10
"""Problems and items of metadata that are printed."""
MAX_NAMED = 3
"""Names in a list of calls or imports of a file."""
_OPTION = re.compile(rf"(?P<group>.*{GROUPS}(?:\.\d+|\[\d+\]))\.(?P<option>[^.]+).*")
"""An option of an optimizer among metadata; those of one group stand in a line."""
_MAX_VALUE = 80
_MAX_SOURCE = 60
"""Characters of a path or an expression; its ends tell it from others."""
_MAX_PROBLEM = 400
_MAX_KEY = 60
_CURE = "take a part of them, such as tnp.weights(...).find('*attn*')"
_MAX_BITS = 1000
"""Bits of a number that is written; Python refuses some thousands of digits."""


def weights_document(
    explorer: WeightsExplorer,
    alarms: Mapping[str, str] = MappingProxyType({}),
    said: Sequence[Part] = (),
    *,
    max_rows: int | None = MAX_ROWS,
    order: Column | None = None,
    class_name: str = "",
) -> Document:
    """Return the totals, a table and the problems under it; a live tree replaces the table.

    `alarms` are texts on non-finite values by the name of a weight, and `said` stands above the table. `order` sorts.
    """
    weights = list(explorer.values())
    rows = rows_of(tree_of(with_modules(weights, explorer.classes) if order is None else weights))
    if order is not None:
        rows = order.sorted(rows, lambda row: row.entries[0])
    table, common, rest = table_of(rows, explorer.source, alarms, max_rows, classes=explorer.classes)
    static = section("tensornp-static", (*said, table, small_print(rest)))
    quiet = [cut(one, _MAX_PROBLEM) for one in _quiet(explorer.problems)]
    below = small_print(*first_lines(quiet, MAX_SAID, "more problems"), *_metadata(explorer))
    return Document((headline(_heading(explorer, common, class_name)), *_loud(explorer), static, below))


def _loud(explorer: WeightsExplorer) -> list[Part]:
    """Return a warning about the imports of an untrusted pickle, if alarming."""
    acts: dict[str, list[str]] = {"call": [], "import": []}
    wanted: list[Any] = [one for one in explorer.problems if _is_loud(one)]
    for one in wanted:
        acts["call" if one.is_called else "import"].append(cut(str(one.wanted), MAX_SHOWN))
    said = [f"{act} {listed(list(dict.fromkeys(names)), MAX_NAMED)}" for act, names in acts.items() if names]
    rest = " · nothing was imported or run"
    rest += "; the weights are read without it" if explorer else ""
    return [alarm_line(f"Loading it would {' and '.join(said)}", rest)] if said else []


def _quiet(problems: Sequence[str]) -> list[str]:
    """Return the problems without alarm, with many imports in one."""
    quiet: list[Any] = [one for one in problems if not _is_loud(one)]
    wanted = [str(one.wanted) for one in quiet if hasattr(one, "wanted")]
    if len(wanted) <= MAX_NAMED:
        return quiet
    others = (one for one in quiet if not hasattr(one, "wanted"))
    return [f"loading it would import {listed(wanted, MAX_NAMED)}; nothing was imported", *others]


def _is_loud(problem: str) -> bool:
    """Return whether a problem is a `WantedImport` that alarms: only a pickle imports or calls anything."""
    return getattr(problem, "is_alarm", False)


def _heading(explorer: WeightsExplorer, common: tuple[str, ...], class_name: str) -> str:
    totals = explorer.totals
    parameters, number = explorer.told_parameters(totals.parameters), totals.elements_stored
    stored = f"{counted(number, 'element')} stored" if number not in (totals.parameters, 0) else ""
    own = [one for one in each_once(explorer.values()) if one._is_trained is not None]
    trained = sum(one.numel for one in own if one._is_trained)
    is_said = trained and not all(one._is_trained for one in own)
    source, own_class = cut_inside(explorer.source, _MAX_SOURCE), explorer.classes.get("", "").partition(" ")[0]
    own_class = own_class or class_name
    said = [
        source, cut(own_class, MAX_SHOWN) if own_class != explorer.source.partition(",")[0] else "",
        number_told(explorer.values()), parameters if totals.parameters or not stored else "", stored,
        explorer.told_nbytes(totals.nbytes),
        f"{trained:,} trainable" if is_said else "",
        *said_once(common, is_whole=True),
    ]  # fmt: skip
    return " · ".join(filter(None, said))


def table_of(
    folded_rows: list[Row],
    source: str,
    alarms: Mapping[str, str],
    max_rows: int | None,
    cure: str = _CURE,
    classes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Table, tuple[str, ...], str]:
    """Return the table, its common cells, and its omissions with their `cure`."""
    rows = _by_parameter([row for row in folded_rows if row.module or not row.entries[0]._is_nothing])
    known = [column for column in COLUMNS if column.text is not None]
    shown, before = [], ""
    for row in rows[:max_rows]:
        # The first weight of a module has its class.
        above = names_above(row.entries[0].name) if row.entries else ()
        module = next((name for name in above if name in classes), "")
        shown.append(_row(row, alarms, row.module or (classes[module] if module not in ("", before) else "")))
        before = module
    table = Table(tuple(column.name for column in known), tuple(shown))
    hidden = sum(len(row.entries) for row in rows[len(table.rows) :])
    rest = f"… {counted(hidden, 'more weight')} left out; {cure}" if hidden else ""
    table, common = without_common(table, tuple(column.name for column in known if column.is_said_once))
    # The heading names the file already, and that what it holds are tensors.
    told = tuple(text for text in common if text not in ("tensor", STATE, cut(file_name(source), MAX_SHOWN)))
    return without_empty(table, tuple(column.name for column in known if column.is_always)), told, rest


def _by_parameter(rows: list[Row]) -> list[Row]:
    """Return the rows, many with the states of each parameter in one, which is named after the largest."""
    found: list[Row] = []
    if len(rows) <= MAX_WHOLE:
        return rows
    for parent, some in groupby(rows, lambda row: row.pattern.rpartition(".")[0]):
        group = list(some)
        is_state = all(row.entries and row.entries[0].kind == STATE for row in group)
        if not is_state or len(group) < 2:
            found += group
            continue
        names = [row.pattern.rpartition(".")[2] for row in group]
        largest = max(group, key=lambda row: row.entries[0].numel)
        entries = (*largest.entries, *chain.from_iterable(row.entries for row in group if row is not largest))
        found.append(Row(f"{parent}.{{{','.join(names)}}}", entries, largest.unlike))
    return found


def _row(row: Row, alarms: Mapping[str, str], beside: str = "") -> TableRow:
    if row.module:
        blank = ("",) * (sum(column.text is not None for column in COLUMNS) - 1)
        name = cut_inside(row.pattern, MAX_INSIDE)
        return TableRow((f"{name}  {cut(beside, MAX_SHOWN)}", *blank), has_facts=False, is_quiet=True)
    cells: tuple[str, ...] = tuple(cells_of(row).values())
    odd = [entry.name for entry in row.entries if entry.name in alarms]
    alarm = alarms[odd[0]] if odd else ""
    if beside and not odd:
        name, text = str(cells[0]), cut(beside, MAX_SHOWN)
        quiet = f'{name_html(name)}&ensp;<span style="{QUIET}">{escape(text)}</span>'
        cells = (Drawn(f"{name}  {text}", quiet), *cells[1:])
    if odd and len(row.entries) > 1:
        alarm += f" in {cut_inside(odd[0], MAX_INSIDE)}" + (f" and {len(odd) - 1:,} more" if len(odd) > 1 else "")
    return TableRow(cells, alarm=alarm)


def _metadata(explorer: WeightsExplorer) -> list[str]:
    """Return the metadata of a file as lines; nested values last, long texts cut."""
    options: dict[str, dict[str, list[str]]] = {}
    rest: dict[str, Any] = {}
    for key, value in explorer.metadata.items():
        if value is None:
            # A module keeps None for each weight that it has not.
            continue
        found = _OPTION.fullmatch(str(key))
        if found is None:
            rest[key] = value
        elif found["option"] not in (PARAMS, NAMES) and value is not False:
            options.setdefault(found["group"], {}).setdefault(found["option"], []).append(_value(value))
    shown = nsmallest(MAX_SAID, rest.items(), key=lambda item: str(item[0]).count("."))
    said = [f"{cut(str(key), _MAX_KEY)}: {_value(value)}" for key, value in shown]
    for group, told in islice(options.items(), MAX_SAID):
        texts = [f"{option}: {', '.join(values[:MAX_NAMED])}" for option, values in islice(told.items(), MAX_SAID)]
        said.append(f"{cut(group, _MAX_KEY)}.{' · '.join(texts)}")
    more = len(rest) - MAX_SAID
    return said + ([f"… {counted(more, 'more item')} of metadata"] if more > 0 else [])


def _value(value: object) -> str:
    """Return a value in a few words; a long one is cut before it is written."""
    if isinstance(value, (dict, list)):
        return counted(len(value), "item")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return f"<int of {value.bit_length():,} bits>"
    if isinstance(value, float):
        return f"{value:.6g}"
    return cut(str(value[: _MAX_VALUE + 1] if isinstance(value, (str, bytes)) else value), _MAX_VALUE)
