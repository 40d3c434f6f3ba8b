"""Two models side by side: what is missing, and of what differs how much, what moved most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted
from tensornp.core.values.compare.compare import DENSE, Comparison
from tensornp.core.values.compare.where import element_text, element_with_nearly_all
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut_inside
from tensornp.models.outline.fold import Row
from tensornp.render.layout.document import Document, Lines, headed
from tensornp.render.layout.table import Table, TableRow, only, without_common, without_empty
from tensornp.render.layout.words import listed, share_text
from tensornp.render.pictures.stats_line import glance_text

MAX_ROWS = 25
"""Lines of weights that are listed."""
MAX_NAMED = 8
"""Names in a line."""
_ALL = 0.99
"""The share of elements from which on nearly every one has changed."""
_HEADINGS = ("name", "moved", "‖Δ‖", "‖before‖", "max |Δ|", "not equal", "shape", "dtype", "what")
_ALWAYS = ("name",)
_MANY = 5
"""Weights of which a median is told."""
_OUTLIER = 2
"""How many times the median of its row a weight has moved that is named."""


class LiveRows(NamedTuple):
    """Every weight that differs in a row of its own, for a view that filters, sorts and opens them.

    Attributes
    ----------
    rows : list of dict
        As `TableRow.data` gives them, what moved most first.
    names : list of str
        The weight of each.
    printed : list of int
        Which of them each printed row leads to: of repeated layers, the one that comes first.
    num_printed : int
        How many weights the printed rows are of.
    """

    rows: list[dict[str, object]]
    names: list[str]
    printed: list[int]
    num_printed: int


def weights_comparison_document(found: WeightsComparison, call: str = "tnp.compare(...)") -> Document:
    """Return the verdict over a table of what moved most, and under it what only one side has.

    `call` is what makes the comparison again, in the words of whoever asked for it.
    """
    head = headed(_sources(found), found.told())
    printed, _ = _tables(found, ())
    return Document((head, Lines(tuple(_rule(found))), printed, Lines(tuple(_said(found, call)))))


def live_rows(found: WeightsComparison, max_rows: int) -> LiveRows:
    """Return the first `max_rows` weights that differ, in the columns of the printed table."""
    names = found.changed()[:max_rows]
    printed, table = _tables(found, names)
    place = {name: i for i, name in enumerate(names)}
    figures = (_figures_of(found, (name,)) for name in names)
    rows = [
        row.data([own.get(heading) for heading in table.headings]) for row, own in zip(table.rows, figures, strict=True)
    ]
    every = found.folded()[: len(printed.rows)]
    first = [min(place.get(one.name, 0) for one in row.entries) for row in every]
    return LiveRows(rows, names, first, sum(len(row.entries) for row in every))


def _sources(found: WeightsComparison) -> list[tuple[str, str]]:
    """Return what was compared, and which of them it is where both are called the same."""
    first, second = map(legible, found.sources)
    sides = (" (first)", " (second)") if first == second else ("", "")
    return list(zip((first, second), sides, strict=True))


def _rule(found: WeightsComparison) -> Iterator[str]:
    """Yield how much has changed on the whole, and what "moved" means."""
    changed = [moved for name, moved in found.moved.items() if not found[name].equal]
    if not changed:
        return
    dense = [sum(one.verdict == words for one in found.values()) for words in DENSE]
    words = [f"{words} in {counted(num, 'weight')}" for words, num in zip(DENSE, dense, strict=True) if num]
    said = words if sum(dense) > 1 else []
    if len(changed) >= _MANY:
        said.append(f"moved {_percent(median(changed))} in the median")
    yield "; ".join(said)
    if found.median_norm:
        floor = f"the median of all norms, {found.median_norm:.3g}"
        yield f"moved: ‖Δ‖ over the norm before, or over {floor}, where that is larger; ≤: the largest of a line"


def _tables(found: WeightsComparison, names: Sequence[str]) -> tuple[Table, Table]:
    """Return the printed table, in which repeated layers are one row, and the rows of `names` in its columns."""
    # What is so of many is no news of one.
    is_dense = sum(one.verdict in DENSE for one in found.values()) > 1
    folded = [_row(found, row, is_dense) for row in found.folded()[:MAX_ROWS]]
    every = [_row(found, Row(name, (found.first[name],)), is_dense) for name in names]
    # Columns that say something in the lines that are seen first.
    printed, _ = without_common(Table(_HEADINGS, tuple(folded)), ("dtype", "not equal"))
    printed = without_empty(printed, _ALWAYS)
    return printed, only(Table(_HEADINGS, tuple(every)), printed.headings)


def _figures_of(found: WeightsComparison, names: Sequence[str]) -> dict[str, float]:
    """Return by their headings the numbers that are told of weights of one row: of several, the largest."""
    every = [found[name] for name in names]
    told: dict[str, list[float | None]] = {
        "moved": [found.moved.get(name) for name in names],
        "‖Δ‖": [one.norm_of_difference for one in every],
        "‖before‖": [one.norm for one in every],
        "max |Δ|": [one.max_abs for one in every],
        "not equal": [one.changed_fraction if one.count else None for one in every],
    }
    known = {heading: [value for value in values if value is not None] for heading, values in told.items()}
    return {heading: max(values) for heading, values in known.items() if values}


def _row(found: WeightsComparison, row: Row, is_dense: bool) -> TableRow:
    names = [entry.name for entry in row.entries]
    every = [found[name] for name in names]
    figures, at_most = _figures_of(found, names), "≤" if len(every) > 1 else ""
    shapes, dtypes = (
        [str(pair[0]), *([str(pair[1])] if pair[0] != pair[1] else [])] for pair in (every[0].shapes, every[0].dtypes)
    )
    texts = {heading: at_most + _FIGURES[heading](value) for heading, value in figures.items()}
    if not any(one.norm for one in every) and "‖before‖" in texts:
        texts["‖before‖"] = "from 0"
    if figures.get("not equal", 1) >= _ALL:
        texts.pop("not equal", None)
    said = {
        "name": cut_inside(row.pattern, MAX_SHOWN) + (f" × {len(every):,}" if len(every) > 1 else ""),
        "what": ", ".join(filter(None, _what(found, row, is_dense))),
        "shape": " and ".join(shapes),
        "dtype": " and ".join(dtypes),
        **texts,
    }
    most, is_outlier = _most(found, row)
    name = legible(row.pattern)
    titles = {"what": legible(most) if is_outlier else "", "name": name if len(name) > MAX_SHOWN else ""}
    return TableRow(
        tuple(said.get(heading, "") for heading in _HEADINGS),
        tuple(titles.get(heading, "") for heading in _HEADINGS),
        alarm=_odd(dict(zip(names, every, strict=True))),
    )


def _what(found: WeightsComparison, row: Row, is_dense: bool) -> Iterator[str]:
    """Yield what has happened, and how odd ones differ from their neighbours."""
    verdicts = {_verdict(found[entry.name]) for entry in row.entries} - (set(DENSE) if is_dense else set())
    if verdicts:
        yield verdicts.pop() if len(verdicts) == 1 else f"{len(verdicts)} kinds of change"
    yield row.unlike
    most, is_outlier = _most(found, row)
    if is_outlier:
        yield f"most in {cut_inside(most, MAX_INSIDE)}"
    # It then lies in few directions for no other reason.
    element = element_with_nearly_all(found[most])
    if element is not None:
        yield element_text(element)
        return
    shares = [found.low_rank[entry.name] for entry in row.entries if entry.name in found.low_rank]
    if shares:
        yield f"{100 * max(shares):.3g}% of the change lies in 8 directions"


def _most(found: WeightsComparison, row: Row) -> tuple[str, bool]:
    """Return which weight of a row has moved most, and whether that is far more than the others."""
    sizes = {entry.name: found.moved.get(entry.name, 0.0) for entry in row.entries}
    most = max(sizes, key=sizes.__getitem__)
    return most, sizes[most] > _OUTLIER * median(sizes.values())


def _verdict(one: Comparison) -> str:
    """Return what has happened in a few words; to a single number, what it was and is."""
    return "{!r} to {!r}".format(*one.first_values) if one.count == 1 and one.first_values else one.verdict


_WHOLE = 0.995
"""The share from which on two digits are 100 percent."""


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if 0 < share < _WHOLE else f"{100 * share:,.0f}%"


_FIGURES: dict[str, Callable[[float], str]] = {
    "moved": _percent,
    "‖Δ‖": glance_text,
    "‖before‖": glance_text,
    "max |Δ|": glance_text,
    "not equal": lambda share: share_text(share, 1),
}
"""How the numbers are written."""


def _odd(every: Mapping[str, Comparison]) -> str:
    """Return what is finite on one side alone; of several weights, in which the first is."""
    counts = {
        "now": sum(one.only_finite_first for one in every.values()),
        "before": sum(one.only_finite_second for one in every.values()),
    }
    said = ", ".join(f"{count:,} NaN or infinite {when}" for when, count in counts.items() if count)
    first = next((name for name, one in every.items() if one.is_odd), "")
    return f"{said} in {cut_inside(first, MAX_INSIDE)}" if said and len(every) > 1 else said


def _said(found: WeightsComparison, call: str) -> list[str]:
    changed, rows = found.changed(), found.folded()
    left = sum(len(row.entries) for row in rows[MAX_ROWS:])
    same = sum(found[name].same_bits for name in found)
    equal = sum(found[name].equal for name in found) - same
    lines = [
        f"… {counted(left, 'more weight')} that moved less; {call}.changed() names them all" if left else "",
        f"{counted(same, 'weight')} with the same bits" if same and changed else "",
        f"{counted(equal, 'weight')} equal, with other bits" if equal and changed else "",
    ]  # fmt: skip
    for names, words in (
        (found.missing, "only in the first"),
        (found.unexpected, "only in the second"),
        (found.retied, "tied to others than before"),
    ):
        if names:
            lines.append(f"{len(names):,} {words}: {listed([legible(name) for name in names], MAX_NAMED)}")
    lines += [
        f"what {legible(name)} gives is quantized otherwise: {said}"
        for name, said in list(found.requantized.items())[:MAX_NAMED]
    ]
    alike: dict[str, list[str]] = {}
    for name, why in found.exempt.items():
        alike.setdefault(why, []).append(legible(name))
    lines += [f"{len(names):,} {legible(why)}: {listed(names, MAX_NAMED)}" for why, names in alike.items()]
    for prefix, side in zip(found.prefixes, ("first", "second"), strict=True):
        if prefix:
            lines.append(f"{prefix!r} is taken off the names of the {side}")
    lines += [f"{legible(name)} was not compared: {why}" for name, why in list(found.failed.items())[:MAX_NAMED]]
    lines += [f"not all is listed of {legible(why)}" for why in found.not_listed[:MAX_NAMED]]
    return [line for line in lines if line]
