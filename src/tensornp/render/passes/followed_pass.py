"""A pass that was followed: what is wrong, over the tree of its calls, as text and as static HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tensornp.core.lowlevel.text import counted
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.passes.follow import FollowedPass
from tensornp.passes.outline import CallLine, not_finite, not_finite_back, outlined
from tensornp.passes.records import (
    BACKWARD,
    BEFORE,
    FORWARD,
    RAISED,
    RECOMPUTED,
    ModuleCall,
    Origin,
    PassRecord,
    SourceLine,
)
from tensornp.passes.verdict.origin import first_origin
from tensornp.passes.verdict.scaling import scale_told
from tensornp.passes.verdict.wording import is_floating, is_mask, listed, odd_input
from tensornp.render.layout.document import Alarm, Both, Document, Group, Heading, Lines
from tensornp.render.layout.style import SOURCE
from tensornp.render.layout.table import (
    Table,
    TableRow,
    only,
    table_html,
    table_text,
    without_common,
    without_empty,
)
from tensornp.render.passes.call_line import ALWAYS, HEADINGS, PICTURE, call_line_row
from tensornp.render.passes.links import Links
from tensornp.render.passes.operator_line import operator_table
from tensornp.render.passes.source_line import clauses_of

_MAX_TEXT = 400
_MAX_PLACE = 120
_MAX_COLUMNS = 80
"""Of a terminal."""
_WORDS = {"nan": "NaN", "inf": "Inf"}


def pass_document(run: FollowedPass) -> Document:
    """Return the card of a pass; of one that is not over, that it is not."""
    if not run.is_over:
        return Document((Lines((repr(run),)),))
    if not run.calls and not run.operators and not run._record.error:
        told = "no module was called here"
        told += ", and no operator" if run._record.has_operators else "; %%follow --operators follows functions"
        return Document((Lines((run._record.passed_by or told, *run._record.notes)),))
    title = ", ".join(dict.fromkeys(call.code or call.title for call in run.calls if call.parent is None))
    return followed_pass_document(run._record, run.problems, title, first_origin(run._record), run.failed)


def followed_pass_document(
    record: PassRecord,
    problems: Sequence[str],
    title: str,
    origin: Origin | None = None,
    failed: ModuleCall | None = None,
) -> Document:
    """Return the problems of a pass, the tree of its calls, and modules not followed.

    Parameters
    ----------
    problems : sequence of str
        The most serious first: where there is an `origin`, or a call has `failed`, the first is an alarm.
    title : str
        What was followed.
    """
    said = [cut(text, _MAX_TEXT) for text in problems]
    links, led = Links(record.calls), failed.index if failed is not None else None
    led, name = (origin.call, origin.name) if origin is not None else (led, "")
    table, common = _table(record, origin, failed)
    verdict: Alarm | Lines | Heading = Heading(_calm(record))
    if said and (origin is not None or failed is not None or record.error):
        # What is told behind the first clause is no alarm; but a backward begins with what was fine.
        told = said.pop(0)
        first, rest = (told, "") if origin is not None and origin.phase == BACKWARD else clauses_of(told)
        verdict = Alarm(links.within(first, led, name), rest)
    source = (
        (_source(origin.source, verdict.text),)
        if origin is not None and origin.source is not None and origin.is_exact
        else ()
    )
    totals = " · ".join(filter(None, [cut(title, MAX_SHOWN), *_totals(record), *common]))
    notes = [cut(text, _MAX_TEXT) for text in record.notes]
    further = (_further(record, origin),) if origin is not None and not record.has_operators else ()
    operators = _tree(operator_table(record, origin))
    # The live tree takes the place of the static one, and the panel of a call has its operators.
    has_panel = origin is not None and origin.call is not None
    calls = Group("tensornp-static", (_tree(table), *((operators,) if has_panel else ())))
    lines = Lines((*further, *map(links.within, said), totals))
    return Document((verdict, *source, lines, calls, *(() if has_panel else (operators,)), Lines(tuple(notes))))


def _further(record: PassRecord, origin: Origin) -> str:
    """Return what tells the operator and the line, where only the module is known."""
    origin = origin.before or origin
    if origin.phase == BEFORE or origin.call is None:
        return ""
    call = record.calls[origin.call]
    is_plain = call.title.replace(".", "").replace("_", "").isalnum() and call.title.isascii()
    # What it got, or held, was made elsewhere.
    is_inside = origin.name == call.title and odd_input(origin.what, call) is None
    is_named = is_plain and is_inside and origin.phase == FORWARD and len(call.title) <= MAX_SHOWN
    only = f" --only {call.title}" if is_named else ""
    since = "; begin with the model as it was, since a step has written its weights" if record.steps else ""
    return f"%%follow --operators{only} names the operator and its line{since}"


def _calm(record: PassRecord) -> str:
    """Return that nothing was NaN or infinite, where something was read, and that is so of all of it."""
    outputs = [value for call in record.calls for value in call.outputs]
    learnt = all(one.figures is None or one.figures.is_finite for one in record.grads)
    is_calm = learnt and not not_finite(outputs) and not not_finite_back(outputs)
    made = [value for one in record.operators for value in one.outputs]
    if not is_calm or any(value.has_nan for value in made) or not any(value.figures for value in (*outputs, *made)):
        return ""
    if any(value.figures is None and is_floating(value) for value in (*outputs, *made)):
        return "no NaN and no infinity in what could be read"
    infinite, given = (
        [value for value in values if value.figures and value.figures.has_inf]
        for values in ((*outputs, *made), outputs)
    )
    kinds = ((len(record.calls), "call"), (len(record.operators), "operator"))
    where = "those of masks" if all(map(is_mask, given)) else "in masks and objects"
    told = f"no NaN, and no infinity but {where}" if infinite else "no NaN and no infinity"
    return f"{told} in {' and '.join(counted(n, noun) for n, noun in kinds if n)}"


def _totals(record: PassRecord) -> Iterator[str]:
    again = sum(call.phase == RECOMPUTED for call in record.calls)
    back = sum(any(value.grad is not None for value in call.outputs) for call in record.calls)
    yield f"{counted(len(record.calls) - again, 'call')} forward" if record.calls else ""
    yield counted(len(record.operators), "operator") if record.operators else ""
    yield f"{again:,} recomputed" if again else ""
    scaled = scale_told(record) if back else ""
    yield ", ".join(filter(None, (f"{counted(back, 'gradient')} back", scaled))) if back else ""
    classes = dict.fromkeys(one.class_name for one in record.steps)
    yield f"{counted(len(record.steps), 'step')} of {listed(list(classes))}" if classes else ""
    dropped = f"{record.num_dropped:,} calls and operators" if record.operators else counted(record.num_dropped, "call")
    yield f"of {dropped} only trouble was kept" if record.num_dropped else ""


def _source(source: SourceLine, verdict: str) -> Both:
    """Return the line of a program, where the verdict has not quoted it."""
    if not source.text or source.text in verdict:
        return Both()
    where, text = cut(f"{source.cell or source.file}:{source.line}", _MAX_PLACE), cut(source.text, _MAX_TEXT)
    return Both(f"    {text}", f'<div style="{SOURCE}" title="{escape(where)}">{escape(text)}</div>')


def alarms_of(record: PassRecord, origin: Origin | None, failed: ModuleCall | None) -> dict[int, str]:
    """Return by the index of a call what gives cause for alarm in it, in a word or two."""
    alarms = {failed.index: RAISED} if failed is not None else {}
    for one in (origin and origin.before, origin):
        if one is not None and one.call is not None:
            alarms[one.call] = _alarm(one, record.calls[one.call])
    return alarms


def outer_of(record: PassRecord) -> frozenset[int | None]:
    """Return the calls through which an error came: what it said stands at the call that raised it."""
    return frozenset(call.parent for call in record.calls if call.status == RAISED)


def _table(record: PassRecord, origin: Origin | None, failed: ModuleCall | None) -> tuple[Table, list[str]]:
    """Return the tree as a table, and what is the same in all of its rows."""
    alarms, outer = alarms_of(record, origin, failed), outer_of(record)
    rows: list[TableRow] = []
    above = [CallLine("", (), -1)]
    for line in outlined(record.calls, alarms):
        del above[line.level + 1 :]
        rows.append(call_line_row(line, above[-1], alarms, outer))
        above.append(line)
    table, common = without_common(Table(HEADINGS, tuple(rows)), ("dtype",))
    return without_empty(table, ALWAYS), [f"each gives {dtype}" for dtype in common]


def _tree(table: Table) -> Both:
    """Return the table, as text without its pictures where it would not fit a terminal with them."""
    if not table.rows:
        return Both()
    text = table_text(table)
    if max(map(len, text.split("\n"))) > _MAX_COLUMNS:
        text = table_text(only(table, [heading for heading in table.headings if heading != PICTURE]))
    return Both(text, table_html(table))


def _alarm(origin: Origin, call: ModuleCall) -> str:
    word = _WORDS.get(origin.what, not_finite(call.outputs) or "NaN")
    return {BEFORE: f"{word} before", BACKWARD: f"first {word} gradient"}.get(origin.phase, f"first {word}")
