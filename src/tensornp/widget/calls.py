"""The live tree of a followed pass."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import traitlets

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.summary.options import DisplayOptions
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import cut
from tensornp.models.outline.columns import Asked, searched
from tensornp.models.outline.fold import Branch
from tensornp.passes.records import MODULE, Call, Figures, PassRecord
from tensornp.passes.tree import CallLine, CallTree
from tensornp.render.layout.table import MARKS
from tensornp.render.layout.tree import TreeColumn, TreeLink, TreeRow
from tensornp.render.passes import rows
from tensornp.render.passes.call import panel_html, plain_title, values_of
from tensornp.render.passes.card import ALARMS, alarms_of, operator_command, title_of
from tensornp.widget.page import NONSENSE, integer_of
from tensornp.widget.part import LivePart, module, stylesheet
from tensornp.widget.tree import Tree
from tensornp.widget.values import Binder, LookedAt

if TYPE_CHECKING:
    from tensornp.passes.follow import FollowedPass

_MAX_TEXT, _MAX_LABEL = 400, 100


def _figures(call: Call) -> Figures | None:
    value = rows.main_value(call.outputs)
    return value.figures if value is not None else None


def _largest(call: Call) -> float | None:
    figures = _figures(call)
    return max(abs(figures.min), abs(figures.max)) if figures is not None and figures.count else None


_ORDERS: dict[str, Callable[[Call], float | None]] = {
    rows.EXTREMES: _largest,
    rows.NORM: lambda call: rows.norm_of(_figures(call)),
    rows.GRAD: lambda call: rows.norm_of(rows.gradient_of(call)),
}
"""Sort keys by heading."""
_WIDTHS = {
    rows.CALL: 30, rows.SHAPE: 12, rows.DTYPE: 8, rows.SAMPLE: 7, rows.EXTREMES: 17, rows.NORM: 8, rows.GRAD: 8,
    MARKS: 32,
}  # fmt: skip
_LEAST_PX = {rows.CALL: 0, rows.SHAPE: 320, rows.NORM: 0, rows.GRAD: 450, MARKS: 450}


class LiveCalls(Tree):
    """The rows of a pass, with alarms by the index of their call."""

    sortable = tuple(_ORDERS)

    def __init__(self, record: PassRecord, alarms: Mapping[int, str]) -> None:
        self._record, self._calls, self._alarms = record, record.calls, alarms
        self._tree = CallTree(record, alarms)
        self.opened, self.num_branches = self._tree.opened(has_open_repeats=False), 2 * len(self._calls)
        self.names = [call.title for call in record.calls[1:]]
        outputs = [value for call in record.calls[1:] for value in call.outputs.values()]
        is_told = {
            rows.GRAD: any(rows.gradient_of(call) is not None for call in record.calls[1:]),
            rows.DTYPE: len({one.dtype for one in outputs}) > 1,
        }
        self._headings = [heading for heading in rows.HEADINGS if is_told.get(heading, True)]

    def columns(self, asked: Asked) -> list[TreeColumn]:
        return [
            TreeColumn(
                heading,
                heading,
                _WIDTHS[heading],
                is_right=heading in _ORDERS,
                is_sortable=heading in _ORDERS,
                is_large_first=heading in _ORDERS,
                least_px=0 if heading == asked.sort else _LEAST_PX.get(heading, 700),
            )
            for heading in self._headings
        ]

    def below(self, parent: int) -> Sequence[Branch]:
        return self._tree.below(parent)

    def listed(self, asked: Asked) -> list[Branch]:
        """Return the calls that a search finds, in the requested order; unknown numbers come last."""
        calls = self._calls[1:]
        if asked.search:
            calls = [calls[i] for i in searched(asked.search, self.names)]
        if asked.sort:
            keys = {call.index: key for call in calls if (key := _ORDERS[asked.sort](call)) is not None}
            known = [call for call in calls if call.index in keys]
            # NaN is greater than all numbers.
            known.sort(key=lambda one: (math.isnan(keys[one.index]), keys[one.index]), reverse=asked.descending)
            calls = [*known, *(call for call in calls if call.index not in keys)]
        return [Branch(call.title, (call,)) for call in calls]

    def id_of(self, item: Branch) -> int:
        return self._tree.id_of(item)

    def path(self, number: int) -> frozenset[int]:
        if not 0 < number < len(self._calls):
            raise BadRequestError(NONSENSE)
        return self._tree.around(number) | {number}

    def facts(self, listed: Sequence[Branch] | None) -> dict[str, Any]:
        return {"text": f"{len(listed):,} of {counted(len(self.names), 'call')}" if listed is not None else ""}

    def row(self, item: Branch, parent: int, opened: frozenset[int], asked: Asked) -> TreeRow:
        """Return the row of calls that are alike, or of one."""
        own, first, line = self.id_of(item), item.entries[0], CallLine(item.label, item.entries)
        has_below = not asked.is_list and bool(self._tree.below(own))
        number = own if len(item.entries) == 1 else -1
        alarm = self._alarms.get(number, "")
        row = rows.row_of(line, self._record, alarm)
        label, cells = cut(item.label, _MAX_TEXT), dict(zip(rows.HEADINGS, row.cells, strict=True))
        source = legible(str(first.source)) if first.source is not None else ""
        whole_name = cut(plain_title(first), _MAX_TEXT) if number >= 0 else label
        return TreeRow(
            own,
            1 if asked.is_list else len(self._tree.around(first.index)) - (number < 0),
            label,
            cells,
            title="\n".join(filter(None, [whole_name, source, cells[MARKS]])),
            beside=rows.beside_of(line, self._record),
            link=TreeLink(alarm, f"{alarm}: show it (n)", number) if alarm else None,
            number=number,
            is_open=own in opened if has_below else None,
            is_quiet=row.is_quiet,
        )


class CallsWidget(LivePart):
    """The calls of a finished pass, held until the cell runs again; `opened` is its expression, or empty."""

    _esm = module("calls")
    _css = stylesheet("tree", "navigator", "calls")

    label = traitlets.Unicode(help="the modules of these calls").tag(sync=True)
    finder = traitlets.Unicode(help="the cell that finds the operator, or nothing").tag(sync=True)

    def __init__(
        self,
        run: FollowedPass,
        *,
        opened: str = "",
        anchor: str = "",
        options: DisplayOptions | None = None,
        binder: Binder | None = None,
    ) -> None:
        self._run, self._opened, self._binder = run, opened, binder
        self._options = options or DisplayOptions()
        handlers = {"rows": self._rows, "open": self._open, "values": self._open_values}
        super().__init__(handlers, anchor=anchor, label=title_of(run._record)[:_MAX_LABEL], finder=_finder(run))

    @cached_property
    def _tree(self) -> LiveCalls:
        return LiveCalls(self._run._record, alarms_of(self._run.findings))

    def close(self) -> None:
        with self._lock:
            self._handlers = {}
            for name in ("_run", "_tree"):
                self.__dict__.pop(name, None)
        super().close()

    def _rows(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._tree.rows(request)

    def _call(self, request: Mapping[str, Any]) -> Call:
        index = integer_of(request.get("row"))
        if not 0 < index < len(self._run._record.calls):
            raise BadRequestError(NONSENSE)
        return self._run._record.calls[index]

    def _code(self, call: Call) -> str:
        if not self._opened:
            return ""
        is_first = bool(call.name) and call.name != call.code and self._run.find(call.name)[:1] == [call]
        return f"{self._opened}[{call.name!r}]" if is_first else f"{self._opened}[{call.index}]"

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        call = self._call(request)
        html = panel_html(call, self._run._record)
        code = self._code(call)
        return {"type": "call", "name": plain_title(call), "copies": {code: code} if code else {}, "html": html}

    def _open_values(self, request: Mapping[str, Any]) -> dict[str, Any]:
        call, number = self._call(request), integer_of(request.get("value"))
        values = values_of(call)
        if not 0 <= number < len(values) or values[number][2].tensor is None:
            raise BadRequestError(NONSENSE)
        value = values[number][2]
        looked_at = LookedAt(lambda: value.tensor, plain_title(call), self._binder, "kept_np", self._options)
        return self._values.show(looked_at)


def _finder(run: FollowedPass) -> str:
    """Return the cell that finds the operator; none after a step, unless the cell makes the models."""
    record, worst = run._record, next((one for one in run.findings if one.kind in ALARMS), None)
    models = {call.code for call in record.children(record.calls[0]) if call.kind == MODULE}
    made = {code for code in models if code and re.search(rf"^\s*{re.escape(code)}\s*=[^=]", run._cell, re.MULTILINE)}
    if worst is None or not run._cell or (record.steps and made != models):
        return ""
    command = operator_command(record, worst)
    return f"{command} {run._cell}" if command else ""
