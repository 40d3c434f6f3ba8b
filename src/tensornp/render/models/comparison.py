"""Show a comparison of two models: missing weights, then the largest changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted, legible, percent
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.rows import quantity_of
from tensornp.models.comparing.unmoved import why_unmoved
from tensornp.models.names.quoted import MAX_INSIDE
from tensornp.models.outline.fold import Row
from tensornp.render.layout.document import Alarm, Document, Lines, headed
from tensornp.render.layout.table import Table, only, rows_html, without_common, without_empty
from tensornp.render.layout.words import listed
from tensornp.render.models.comparison_row import HEADINGS, cut_apart, figures_of, moved_most, table_row

MAX_ROWS, MAX_STATES = 25, 8
"""Lines of weights that are listed, and of states of optimizers."""
MAX_NAMED = 8
"""Names in a line, and rows of weights that are named."""
_ALWAYS = ("name",)
_MANY = 5
"""A median is told from so many weights on."""
_CURE = ": a copy that is made before a step, as by copy.deepcopy, keeps the old values"


class Fold(NamedTuple):
    """Rows that are not listed, with a summary."""

    said: str
    rows: list[Row]


class LiveRows(NamedTuple):
    """Every weight in a row of its own, for a view that searches, sorts and opens them.

    Attributes
    ----------
    html : str
        The rows in the columns of the printed table, what moved most first, and what is equal last.
    names : list of str
        The weight of each.
    printed : list of list of int
        Which of them each printed row is of: an odd one first, then in the order of the layers.
    noun : str
        What each is: "weight", "state", "tensor", or "name" where some are further names of one weight.
    """

    html: str
    names: list[str]
    printed: list[list[int]]
    noun: str


def weights_comparison_document(found: WeightsComparison, call: str = "tnp.compare(...)") -> Document:
    """Return the comparison: verdict, table of the largest changes, one-sided weights.

    `call` is what makes the comparison again, in the words of whoever asked for it.
    """
    head, num = headed(_sources(found), found._told()), len(found._same_memory)
    printed, _ = _tables(found, printed_rows(found), ())
    folds = Lines(tuple(_fold_text(fold, call) for fold in folds_of(found)))
    alarm = Alarm(f"{counted(num, 'weight')} of {len(found):,} are the same memory on both sides", _CURE)
    parts = (Lines(tuple(_rule(found))), printed, folds, Lines(tuple(_said(found))))
    return Document((head, *([alarm] if num else []), *parts))


def live_rows(found: WeightsComparison, max_rows: int) -> LiveRows:
    """Return the first `max_rows` weights, what is equal last, in the columns of the printed table."""
    names = list(found)[:max_rows]
    place = {name: i for i, name in enumerate(names)}
    rows = printed_rows(found)
    printed, every = _tables(found, rows, [Row(name, (found._first[name],)) for name in names])

    def members(row: Row) -> list[int]:
        # In the order of the layers, but for an odd one: that is what one looks for.
        most, is_outlier = moved_most(found, row)
        inside = sorted((entry.name for entry in row.entries), key=lambda name: not (is_outlier and name == most))
        return [place[name] for name in inside if name in place]

    html = rows_html(every, printed, [figures_of(found, (name,)) for name in names])
    return LiveRows(html, names, list(map(members, rows)), noun_of(found))


def printed_rows(found: WeightsComparison) -> list[Row]:
    """Return the rows of differences: the weights that moved most, and a few states of an optimizer."""
    rows = found._rows_of(found.changed())
    states = [row for row in rows if quantity_of(row.entries[0])][:MAX_STATES]
    weights = [row for row in rows if not quantity_of(row.entries[0])]
    kept = {row.pattern for row in (*weights[:MAX_ROWS], *states)}
    return [row for row in rows if row.pattern in kept]


def folds_of(found: WeightsComparison) -> list[Fold]:
    """Return the folds of smaller changes and of equal weights."""
    why, noun = why_unmoved(found), noun_of(found)
    listed_rows = {row.pattern for row in printed_rows(found)}
    if not (listed_rows or why):
        return []
    left = [row for row in found._rows_of(found.changed()) if row.pattern not in listed_rows]
    folds = [Fold(f"… {counted(_num_in(left), f'more {noun}')} that moved less", left)] if left else []
    kinds: dict[str, list[str]] = {}
    for name in (name for name in found if found[name].equal):
        how = "with the same bits" if found[name].same_bits else "of equal values"
        fact = why.get(name, "").partition(" (")[0]
        kinds.setdefault(how + (f", {fact}" if fact else ""), []).append(name)
    for how, names in kinds.items():
        folds.append(Fold(f"{counted(len(names), noun)} {how}", found._rows_of(names)))
    return folds


def noun_of(found: WeightsComparison) -> str:
    """Return the noun for what is compared: weights, states or tensors."""
    kinds = {bool(quantity_of(found._first[name])) for name in found}
    if len(kinds) > 1:
        return "tensor"
    return "state" if True in kinds else "name" if found._tied else "weight"


def _num_in(rows: Sequence[Row]) -> int:
    return sum(len(row.entries) for row in rows)


def _fold_text(fold: Fold, call: str) -> str:
    """Return the summary of a fold and the names in it."""
    if fold.said.startswith("…"):
        return f"{fold.said}; {call}.changed() names them all"
    return f"{fold.said}: {_patterns(fold.rows)}"


def _patterns(rows: Sequence[Row]) -> str:
    """Return the names of rows, each with how many weights it is of."""
    named = rows[:MAX_NAMED]
    names = cut_apart([row.pattern for row in named], MAX_INSIDE)
    said = [
        name + (f" × {len(row.entries):,}" if len(row.entries) > 1 else "")
        for name, row in zip(names, named, strict=True)
    ]
    return listed(said + [""] * (_num_in(rows) - _num_in(named)), MAX_NAMED)


def _sources(found: WeightsComparison) -> list[tuple[str, str]]:
    """Return the names of both sides, numbered if they are equal."""
    first, second = map(legible, found._sources)
    sides = (" (first)", " (second)") if first == second else ("", "")
    return list(zip((first, second), sides, strict=True))


def _rule(found: WeightsComparison) -> Iterator[str]:
    """Yield the share of a model that changed, and the meaning of "moved"."""
    is_mixed = noun_of(found) == "tensor"
    names = [name for name in found if not (name in found._tied or (is_mixed and found._quantities[name]))]
    changed = [found.moved[name] for name in names if name in found.moved and not found[name].equal]
    if len(changed) >= _MANY:
        yield f"moved {percent(median(changed))} in the median"
    if changed:
        floor = found._median_norms.get("", 0.0)
        of_weights = f" of weights ({floor:.3g})" if floor else ""
        yield f"moved: ‖Δ‖ over the norm before, or over the median norm{of_weights} if that is larger"
    if any(len(row.entries) > 1 for row in printed_rows(found)):
        yield "≤: the largest of a line"


def _tables(found: WeightsComparison, rows: Sequence[Row], others: Sequence[Row]) -> tuple[Table, Table]:
    """Return the printed table of `rows`, and other rows in its columns."""
    shown, every = (
        [table_row(found, row, name) for row, name in zip(some, cut_apart([row.pattern for row in some]), strict=True)]
        for some in (rows, others)
    )
    # Columns that say something in the lines that are seen first.
    printed, _ = without_common(Table(HEADINGS, tuple(shown)), ("dtype", "not equal"))
    printed = without_empty(printed, _ALWAYS)
    return printed, only(Table(HEADINGS, tuple(every)), printed.headings)


def _said(found: WeightsComparison) -> list[str]:
    lines = []
    for names, words in (
        (found.missing, f"only in {found._sides[0]}"),
        (found.unexpected, f"only in {found._sides[1]}"),
        (found._retied, "tied to others than before"),
    ):
        if names:
            lines.append(f"{len(names):,} {words}: {listed([legible(name) for name in names], MAX_NAMED)}")
    lines += _first(
        f"{legible(name)}, beside the weights, is another value: {legible(told)}"
        for name, told in found._beside.items()
    )
    lines += _first(_by_reason(found._exempt))
    lines += _prefixes_told(found)
    lines += _first(f"{legible(name)} was not compared: {why}" for name, why in found.failed.items())
    lines += _first(f"not all is listed of {legible(why)}" for why in found._not_listed)
    return [line for line in lines if line]


def _first(lines: Iterable[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    every = list(lines)
    left = len(every) - MAX_NAMED
    return [*every[:MAX_NAMED], *([f"… and {left:,} more of these"] if left > 0 else [])]


def _by_reason(whys: Mapping[str, str]) -> list[str]:
    """Return for each reason how many names have it, and the first of them."""
    alike: dict[str, list[str]] = {}
    for name, why in whys.items():
        alike.setdefault(why, []).append(legible(name))
    return [f"{len(names):,} {legible(why)}: {listed(names, MAX_NAMED)}" for why, names in alike.items()]


def _prefixes_told(found: WeightsComparison) -> list[str]:
    """Return which side has a prefix before its names.

    The rows have the names of the first, and both are found.
    """
    told = [
        f"{side} has {prefix!r} before its names"
        for prefix, side in zip(found._prefixes, found._sides, strict=True)
        if prefix
    ]
    if len(told) == 1:
        told[0] += f", {found._sides[bool(found._prefixes[0])]} has not"
    return [f"{', '.join(told)}: a weight is found by either name"] if told else []
