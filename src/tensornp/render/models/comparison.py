"""Show a comparison of two models: missing weights, then the largest changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted, legible, percent
from tensornp.core.values.compare.compare import DENSE
from tensornp.models.comparing.comparison import WeightsComparison, why_unmoved
from tensornp.models.comparing.rows import STEP, parameter_of, quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut_inside
from tensornp.models.outline.fold import Row
from tensornp.render.layout.document import Document, alarm_line, headed, small_print
from tensornp.render.layout.table import Table, TableRow, only, rows_html, without_common, without_empty
from tensornp.render.layout.words import first_lines, listed, share_text
from tensornp.render.pictures.stats_line import glance_text

CHANGE, LARGEST, NOT_EQUAL = "change", "largest difference", "not equal"
HEADINGS = ("name", CHANGE, LARGEST, NOT_EQUAL, "shape", "dtype", "what")
MAX_ROWS, MAX_STATES = 25, 8
"""Rows of weights, and of optimizer states."""
MAX_NAMED = 8
"""Names in a line."""
_NEARLY_ALL = 0.99
"""Shares of changed elements are printed if one is smaller."""
_CURE = ": a copy that is made before a step, as by copy.deepcopy, keeps the old values"
_FIGURES: dict[str, Callable[[float], str]] = {
    CHANGE: percent,
    LARGEST: glance_text,
    NOT_EQUAL: lambda share: share_text(share, 1).replace(".00%", "%"),
}
"""The text of each number."""


class LiveRows(NamedTuple):
    """All weights in one row each, for a page that searches, sorts and opens them.

    `printed` has the weight that each printed row opens: one with an alarm, or the largest change.
    """

    html: str
    names: list[str]
    printed: list[int]


def weights_comparison_document(found: WeightsComparison, call: str = "tnp.compare(...)") -> Document:
    head, num = headed(_sources(found), found._told()), len(found._same_memory)
    rows = printed_rows(found)
    printed, _ = _tables(found, rows, ())
    verb = "is" if num == 1 else "are"
    alarm = alarm_line(f"{counted(num, 'weight')} of {len(found):,} {verb} the same memory on both sides", _CURE)
    below = (small_print(*lines) for lines in (_folds(found, rows, call), _one_sided(found)))
    return Document((head, *([alarm] if num else []), small_print(*_rule(found)), printed, *below))


def live_rows(found: WeightsComparison, max_rows: int) -> LiveRows:
    """Return the first `max_rows` weights, equal ones last, in the columns of the printed table."""
    names = list(found)[:max_rows]
    place = {name: i for i, name in enumerate(names)}
    rows = printed_rows(found)
    printed, every = _tables(found, rows, [Row(name, (found._first[name],)) for name in names])
    ranks = {name: (one._is_odd, found.moved.get(name, 0.0)) for name, one in found.items()}
    opened = [max((one.name for one in row.entries), key=ranks.__getitem__) for row in rows]
    html = rows_html(every, printed, [_figures_of(found, (name,)) for name in names])
    return LiveRows(html, names, [place.get(name, 0) for name in opened])


def printed_rows(found: WeightsComparison) -> list[Row]:
    """Return the rows of the largest changes of weights, and a few states of an optimizer."""
    rows = found._rows_of(found.changed())
    states = [row for row in rows if quantity_of(row.entries[0])][:MAX_STATES]
    weights = [row for row in rows if not quantity_of(row.entries[0])]
    kept = {row.pattern for row in (*weights[:MAX_ROWS], *states)}
    return [row for row in rows if row.pattern in kept]


def _noun_of(found: WeightsComparison) -> str:
    kinds = {bool(quantity_of(found._first[name])) for name in found}
    if len(kinds) > 1:
        return "tensor"
    return "state" if True in kinds else "weight"


def _sources(found: WeightsComparison) -> list[tuple[str, str]]:
    """Return the names of both sides, numbered if they are equal."""
    first, second = map(legible, found._sources)
    sides = (" (first)", " (second)") if first == second else ("", "")
    return list(zip((first, second), sides, strict=True))


def _rule(found: WeightsComparison) -> Iterator[str]:
    is_mixed = _noun_of(found) == "tensor"
    names = [name for name in found if not (is_mixed and found._quantities[name])]
    changes = {name: found.moved[name] for name in names if name in found.moved and not found[name].equal}
    if any(changes.values()):
        # The norm of a small weight is not what its change is told by.
        is_own = {math.isclose(found[name].relative or 0, one, rel_tol=1e-3) for name, one in changes.items()}
        of = " or ".join(["their size"] * (True in is_own) + ["the median norm of weights"] * (False in is_own))
        yield f"they changed by up to {percent(max(changes.values()))} of {of}"
        floor = found._median_norms.get("", 0.0)
        of_weights = f" of weights ({floor:.3g})" if floor else ""
        yield f"change: norm of the difference ÷ norm before, or ÷ the median norm{of_weights} if that is larger"


def _tables(found: WeightsComparison, rows: Sequence[Row], others: Sequence[Row]) -> tuple[Table, Table]:
    printed, every = (Table(HEADINGS, tuple(_table_row(found, row) for row in some)) for some in (rows, others))
    printed, _ = without_common(printed, (NOT_EQUAL,) if found.retyped else ("dtype", NOT_EQUAL))
    shares = [_figures_of(found, (entry.name,)).get(NOT_EQUAL, 1) for row in rows for entry in row.entries]
    is_dense = min(shares, default=1) >= _NEARLY_ALL
    printed = only(printed, [heading for heading in printed.headings if heading != NOT_EQUAL or not is_dense])
    printed = without_empty(printed, ("name",))
    return printed, only(every, printed.headings)


def _figures_of(found: WeightsComparison, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers of one row by heading: the largest of several weights."""
    return {heading: max(values) for heading, values in _numbers_of(found, names).items()}


def _numbers_of(found: WeightsComparison, names: Sequence[str]) -> dict[str, list[float]]:
    """Return the known numbers of some weights by heading.

    A weight with a new NaN has no change of 0, although all that is finite is equal.
    """
    every = [found[name] for name in names]
    moved = [name for name in names if found[name].max_abs or not found[name]._is_odd]
    figures: dict[str, list[float | None]] = {
        CHANGE: [found.moved.get(name) for name in moved],
        LARGEST: [found[name].max_abs for name in moved],
        NOT_EQUAL: [one.changed_fraction if one.count else None for one in every],
    }
    known = {heading: [value for value in values if value is not None] for heading, values in figures.items()}
    return {heading: values for heading, values in known.items() if values}


def _range_text(heading: str, values: Sequence[float]) -> str:
    """Return the number of alike weights in words: 2%, up to 2%, or 1.2% … 15% if they differ much."""
    low, high = min(values), max(values)
    least, most = map(_FIGURES[heading], (low, high))
    if least == most:
        return most
    return f"{least} … {most}" if low < high / 2 else f"up to {most}"


def _table_row(found: WeightsComparison, row: Row) -> TableRow:
    names = [entry.name for entry in row.entries]
    every = [found[name] for name in names]
    texts = {heading: _range_text(heading, values) for heading, values in _numbers_of(found, names).items()}
    cells = {
        "name": cut_inside(row.pattern, MAX_SHOWN) + _times(row),
        "what": ", ".join(filter(None, _words(found, row))),
        "shape": _of_both([one._shapes for one in every]),
        "dtype": _of_both([one._dtypes for one in every]),
        **texts,
    }
    return TableRow(tuple(cells.get(heading, "") for heading in HEADINGS), alarm=_alarm(found, names))


def _of_both(pairs: Sequence[tuple[object, object]]) -> str:
    """Return the fact of both sides, once if equal; empty if weights differ in it."""
    return " and ".join(dict.fromkeys(map(str, pairs[0]))) if len(set(pairs)) == 1 else ""


def _words(found: WeightsComparison, row: Row) -> Iterator[str]:
    names = [entry.name for entry in row.entries]
    if len(names) == 1:
        yield parameter_of(row.entries[0])
    if tied := row.entries[0].tied_to:
        yield f"tied to {cut_inside(tied[0], MAX_INSIDE)}"
    # The columns "not equal" and "dtype" say how dense a change is, and between which dtypes.
    dtypes = _of_both([found[name]._dtypes for name in names])
    every = (_verdict(found, entry).removeprefix(f"{dtypes}: ") for entry in row.entries)
    verdicts = {verdict.removesuffix(f", {dtypes}") for verdict in every} - set(DENSE)
    yield next(iter(verdicts)) if len(verdicts) == 1 else f"{len(verdicts)} kinds of change" if verdicts else ""
    yield "from 0" if all(found[name]._norm == 0 and found[name]._norm_of_difference for name in names) else ""


def _verdict(found: WeightsComparison, entry: WeightEntry) -> str:
    """Return a verdict in a few words, or both values of a single number."""
    one = found[entry.name]
    if one.count != 1 or not one._first_values:
        return one.verdict
    # The steps of optimizers are floats.
    is_step = quantity_of(entry) == STEP
    return " to ".join(f"{value:,.0f}" if is_step and value % 1 == 0 else repr(value) for value in one._first_values)


def _alarm(found: WeightsComparison, names: Sequence[str]) -> str:
    """Return the number of elements that are finite on one side only, and the first weight with any."""
    counts = {
        "now": sum(found[name]._only_finite_first for name in names),
        "before": sum(found[name]._only_finite_second for name in names),
    }
    text = ", ".join(f"{count:,} NaN or infinite {when}" for when, count in counts.items() if count)
    first = next((name for name in names if found[name]._is_odd), "")
    return f"{text} in {cut_inside(first, MAX_INSIDE)}" if text and len(names) > 1 else text


def _folds(found: WeightsComparison, printed: Sequence[Row], call: str) -> Iterator[str]:
    why, noun = why_unmoved(found), _noun_of(found)
    if not (printed or why):
        return
    patterns = {row.pattern for row in printed}
    left = [row for row in found._rows_of(found.changed()) if row.pattern not in patterns]
    if left:
        yield f"… {counted(_num_in(left), f'more {noun}')} that moved less; {call}.changed() names them all"
    kinds: dict[str, list[str]] = {}
    for name in (name for name in found if found[name].equal):
        fact = why.get(name, "").partition(" (")[0]
        how = "unchanged" if found[name].same_bits else "equal, with other bits"
        kinds.setdefault(how + (f", {fact}" if fact else ""), []).append(name)
    for how, names in kinds.items():
        rows = found._rows_of(names)
        texts = [cut_inside(row.pattern, MAX_INSIDE) + _times(row) for row in rows[:MAX_NAMED]]
        texts += [""] * (_num_in(rows) - _num_in(rows[:MAX_NAMED]))
        # A reason says what to do about them.
        which = "" if how == "unchanged" else f": {listed(texts, MAX_NAMED)}"
        yield f"{counted(len(names), noun)} {how}{which}"


def _times(row: Row) -> str:
    return f" × {len(row.entries):,}" if len(row.entries) > 1 else ""


def _num_in(rows: Sequence[Row]) -> int:
    return sum(len(row.entries) for row in rows)


def _one_sided(found: WeightsComparison) -> Iterator[str]:
    for names, side in zip((found.missing, found.unexpected), found._sides, strict=True):
        if names:
            yield f"{len(names):,} only in {side}: {listed([legible(name) for name in names], MAX_NAMED)}"
    what = "beside the weights, is another value:"
    values = [f"{legible(name)}, {what} {legible(text)}" for name, text in found._beside.items()]
    yield from first_lines(values, MAX_NAMED)
    alike: dict[str, list[str]] = {}
    for name, why in found._exempt.items():
        alike.setdefault(why, []).append(legible(name))
    exempt = [f"{len(names):,} on one side, {legible(why)}: {listed(names, MAX_NAMED)}" for why, names in alike.items()]
    yield from first_lines(exempt, MAX_NAMED)
    for prefix, side in zip(found._prefixes, found._sides, strict=True):
        if prefix:
            yield f"{side} has {prefix!r} before its names: a weight is found by either name"
    failed = [f"{legible(name)} was not compared: {why}" for name, why in found.failed.items()]
    yield from first_lines(failed, MAX_NAMED)
    yield from first_lines([f"not all is listed of {legible(why)}" for why in found._not_listed], MAX_NAMED)
