"""Convert a call to plain data that the page inserts as text."""

from __future__ import annotations

import linecache
import math
import os
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted, format_number, format_ordinal, legible
from tensornp.core.tensor.dtypes import name_of
from tensornp.models.names.quoted import cut
from tensornp.passes.outline import not_finite
from tensornp.passes.records import Figures, Gradient, ModuleCall, OperatorCall, SourceLine, Value
from tensornp.passes.short import sizes_told
from tensornp.passes.verdict.wording import parameter_name
from tensornp.render.layout.table import RIGHT, without_common
from tensornp.render.passes.call_line import least_norm
from tensornp.render.passes.operator_line import inside_table
from tensornp.render.passes.sample import histogram_of
from tensornp.render.pictures.png import data_uri, histogram_png
from tensornp.render.pictures.stats_line import histogram_alt

_HEADINGS = ("value", "shape", "min … max", "mean", "norm", "made by", "relation", "dtype", "device", "notes")
_COMMON = ("device", "dtype")
_NUMBERS = ("min … max", "mean", "norm")
_MAX_VALUES, _MAX_PICTURES = 30, 4
"""Values of a kind that have rows, and of all that have pictures."""
_WIDTH, _HEIGHT = 224, 48
_MAX_TEXT = 400
_NAME = re.compile(r"[\w.-]+")
_AROUND, _MAX_NBYTES = 2, 2**22
"""Lines before and behind one of a program, and bytes of a file of which these are read."""


def call_data(
    calls: Sequence[ModuleCall],
    grads: Mapping[str, Gradient],
    index: int,
    opened: str = "",
    born: tuple[str, SourceLine | None] = ("", None),
    kept: Collection[int] = (),
) -> dict[str, Any]:
    """Return the details of one call.

    `opened` is the expression of the pass, `grads` are by parameter; `born` is what was born in this call, and where;
    `kept` are the numbers of those of its values of which all elements can be seen.
    """
    call = calls[index]
    kinds = (("inputs", call.inputs), ("outputs", call.outputs), ("parameters", call.params))
    return {
        "name": cut(call.title, _MAX_TEXT),
        "className": cut(call.class_name, _MAX_TEXT) if call.class_name != call.title else "",
        "code": code_of(calls, call, opened),
        "hint": "" if kept else _hint(call),
        "facts": [[label, cut(said, _MAX_TEXT)] for label, said in _facts(calls, call) if said],
        "error": cut(call.error, _MAX_TEXT),
        "notes": [cut(note, _MAX_TEXT) for note in call.notes],
        "places": list(_places(call, *born)),
        "pictures": list(_pictures(call)),
        **_table(call, {kind: values for kind, values in kinds if values}, grads, kept),
    }


def code_of(calls: Sequence[ModuleCall], call: ModuleCall, opened: str) -> str:
    """Return the expression of a call, ``""`` if none reaches the pass."""
    if not opened:
        return ""
    is_first = bool(call.name) and next(one for one in calls if call.name in (one.name, one.code)) is call
    return f"{opened}[{call.name!r}]" if is_first else f"{opened}.calls[{call.index}]"


def _facts(calls: Sequence[ModuleCall], call: ModuleCall) -> Iterator[tuple[str, str]]:
    above = calls[call.parent] if call.parent is not None else None
    times = sum(one.name == call.name and one.class_name == call.class_name for one in calls)
    values = (*call.inputs, *call.outputs, *call.params)
    devices, dtypes = {one.device for one in values}, {name_of(one.dtype) for one in values}
    yield "inside", above.title if above is not None else ""
    yield "call", f"{format_ordinal(call.nth + 1)} of {times:,}" if times > 1 else ""
    yield "phase", call.phase
    yield "status", call.status
    yield "thread", call.thread
    yield "dtype", dtypes.pop() if len(dtypes) == 1 else ""
    yield "device", devices.pop() if len(devices) == 1 else ""


def operators_data(operators: Sequence[OperatorCall], born: int | None) -> dict[str, Any]:
    """Return a table of the operators in a call, around index `born` if too long."""
    at = next((i for i, one in enumerate(operators) if one.index == born), 0)
    first = max(min(at - _MAX_VALUES // 2, len(operators) - _MAX_VALUES), 0)
    some = operators[first : first + _MAX_VALUES]
    table, _ = without_common(inside_table(some, born), ("dtype",))
    rows = [
        [{"text": row.cells[0], "alarm": row.alarm}, *({"text": text} for text in row.cells[1:])] for row in table.rows
    ]
    more = len(operators) - len(some)
    group = {"title": "", "rows": rows, "more": counted(more, "more operator") if more else ""}
    return {
        "headings": [{"text": heading, "isRight": heading in RIGHT} for heading in table.headings],
        "groups": [group] if rows else [],
    }


def _hint(call: ModuleCall) -> str:
    """Return the magic that keeps all elements of a sampled call, or ``""``."""
    sampled = [one for one in call.outputs if one.sample and one.figures and one.figures.count > len(one.sample)]
    return f"%%follow --keep {call.name}" if sampled and _NAME.fullmatch(call.name) else ""


def _table(
    call: ModuleCall,
    kinds: Mapping[str, Sequence[Value]],
    grads: Mapping[str, Gradient],
    kept: Collection[int],
) -> dict[str, Any]:
    """Return a table of all values without empty columns or a common device."""
    rows: list[list[dict[str, Any]]] = []
    groups: list[dict[str, Any]] = []
    first = 0
    for kind, values in kinds.items():
        own: list[list[dict[str, Any]]] = []
        for number, one in enumerate(values[:_MAX_VALUES], first):
            row, *below = _rows(call, kind, one, grads)
            row[0] |= {"kept": number} if number in kept else {}
            own += [row, *below]
        first += len(values)
        more = max(len(values) - _MAX_VALUES, 0)
        groups.append({"title": kind, "rows": own, "more": counted(more, "more value") if more else ""})
        rows += own
    said = {heading: {row[i]["text"] for row in rows} - {""} for i, heading in enumerate(_HEADINGS)}
    # What is one of all is a fact of the call.
    is_said = [len(said[heading]) > (heading in _COMMON) for heading in _HEADINGS]
    for group in groups:
        group["rows"] = [[cell for cell, is_kept in zip(row, is_said, strict=True) if is_kept] for row in group["rows"]]
    headings = [
        {"text": heading, "isRight": heading in _NUMBERS}
        for heading, is_kept in zip(_HEADINGS, is_said, strict=True)
        if is_kept
    ]
    return {"headings": headings, "groups": groups}


def _rows(call: ModuleCall, kind: str, value: Value, grads: Mapping[str, Gradient]) -> Iterator[list[dict[str, Any]]]:
    """Yield the row of a value, and the row of its gradient if there is one."""
    gradient = grads.get(parameter_name(call, value)) if kind == "parameters" else None
    back = value.grad if gradient is None or value.grad is not None else gradient.figures
    notes = ", ".join(filter(None, (value.note, gradient.note if gradient is not None else "")))
    made = {} if value.maker is None else {"number": value.maker}
    is_told = kind == "inputs" or (kind == "outputs" and value.maker not in (None, call.index))
    yield [
        {"text": cut(value.path, _MAX_TEXT) or ("result" if kind == "outputs" else "value")},
        {"text": sizes_told(value.shape)},
        *_figures(value.figures, is_odd=bool(not_finite([value]))),
        {"text": cut(value.made_by, _MAX_TEXT), **made} if is_told else {"text": ""},
        {"text": value.relation},
        {"text": name_of(value.dtype)},
        {"text": value.device},
        {"text": cut(notes, _MAX_TEXT)},
    ]
    if back is not None:
        after = [{"text": ""}] * (len(_HEADINGS) - 2 - len(_NUMBERS))
        figures = _figures(back, is_odd=not back.is_finite)
        yield [{"text": "gradient", "isBelow": True}, {"text": ""}, *figures, *after]


def _figures(figures: Figures | None, *, is_odd: bool) -> list[dict[str, Any]]:
    if figures is None or not figures.count:
        return [{"text": ""}] * len(_NUMBERS)
    norm = least_norm(figures)
    is_bound = not figures.has_nan and math.isnan(figures.norm)
    return [
        {"text": _between(figures), "isAlarm": is_odd},
        {"text": _number(figures.mean) if figures.has_nan or not math.isnan(figures.mean) else ""},
        {"text": "≥" * is_bound + _number(norm) if norm is not None else ""},
    ]


def _between(figures: Figures) -> str:
    low, high = _number(figures.min), _number(figures.max)
    return low if low == high else f"{low} … {high}"


def _number(value: float) -> str:
    """Return a number in four digits."""
    return format_number(value + 0.0)


def _pictures(call: ModuleCall) -> Iterator[dict[str, Any]]:
    """Yield labeled histograms of the samples of a call's outputs and inputs."""
    named = [("result", one) for one in call.outputs] + [("input", one) for one in call.inputs]
    sampled = [(kind, one) for kind, one in named if one.sample and one.figures]
    for kind, one in sampled[:_MAX_PICTURES]:
        histogram = histogram_of([one.figures] if one.figures else [], [one.sample])
        if histogram is None or one.figures is None:
            continue
        whole = f" of {one.figures.count:,}" if one.figures.count > len(one.sample) else ""
        yield {
            "src": data_uri(histogram_png(histogram, _WIDTH, _HEIGHT)),
            "alt": histogram_alt(histogram),
            "caption": f"{kind} {cut(one.path, _MAX_TEXT)}".strip() + f" · {histogram.scope}{whole}",
            "ends": [_number(one.figures.min), _number(one.figures.max)],
        }


def _places(call: ModuleCall, what: str, born: SourceLine | None) -> Iterator[dict[str, Any]]:
    """Yield source lines: of the origin in a call, and of the call."""
    if born is not None and born != call.source:
        yield _place_data(what, born, _AROUND)
    if call.source is not None:
        yield _place_data("called", call.source, 0 if born is not None and born != call.source else _AROUND)


def _place_data(what: str, source: SourceLine, around: int) -> dict[str, Any]:
    place = f"{source.cell} line {source.line}" if source.cell else f"{source.file}:{source.line}"
    function = f" in {source.function}" if source.function.isidentifier() else ""
    found = lines_around(source, around)
    lines = [{"line": line, "text": legible(text), "isIt": line == source.line} for line, text in found]
    return {"where": cut(f"{what}: {place}{function}", _MAX_TEXT), "lines": lines}


def lines_around(source: SourceLine, around: int) -> list[tuple[int, str]]:
    """Return a numbered source line with context, alone if the file has changed."""
    if not source.text:
        return []
    lines = _lines_of(source.file)
    if not 0 < source.line <= len(lines) or lines[source.line - 1].strip() != source.text:
        return [(source.line, source.text)]
    first = max(source.line - around, 1)
    some = [line.expandtabs().rstrip("\n") for line in lines[first - 1 : source.line + around]]
    return list(enumerate(textwrap.dedent("\n".join(some)).split("\n"), first))


def _lines_of(file: str) -> list[str]:
    """Return the lines of a source file or a cell, none for other or too large files."""
    try:
        is_program = file in linecache.cache or (os.path.isfile(file) and os.path.getsize(file) <= _MAX_NBYTES)
    except (OSError, ValueError):
        return []
    return linecache.getlines(file) if is_program else []
