"""Two models side by side: what is missing, and of what differs how much, what moved most first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted
from tensornp.core.values.compare.compare import Comparison
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.outline.fold import Row
from tensornp.render.layout.document import Document, Lines, headed
from tensornp.render.layout.table import Table, TableRow, without_common, without_empty
from tensornp.render.layout.words import listed, share_text
from tensornp.render.pictures.stats_line import glance_text

MAX_ROWS = 25
"""Lines of weights that are listed."""
MAX_NAMED = 8
"""Names in a line."""
_ALL = 0.99
"""The share of elements from which on nearly every one has changed."""
_HEADINGS = ("name", "moved", "‖Δ‖", "‖before‖", "max |Δ|", "not equal", "what", "shape", "dtype")
_ALWAYS = ("name",)
DENSE = "dense change"
_MANY = 5
"""Weights of which a median is told."""


def weights_comparison_document(found: WeightsComparison, call: str = "tnp.compare(...)") -> Document:
    """Return the verdict over a table of what moved most, and under it what only one side has.

    `call` is what makes the comparison again, in the words of whoever asked for it.
    """
    head = headed(_sources(found), found.told())
    return Document((head, Lines(tuple(_rule(found))), _table(found), Lines(tuple(_said(found, call)))))


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
    if len(changed) >= _MANY:
        yield f"in the median, a weight has moved {_percent(median(changed))} of its norm"
    if found.median_norm:
        floor = f"the median of all norms, {found.median_norm:.3g}"
        yield f"moved: ‖Δ‖ over the norm before, or over {floor}, where that is larger"


def _table(found: WeightsComparison) -> Table:
    moved, said = found.moved, [found[name].verdict for name in found.changed()]
    # What is so of many is no news of one.
    is_dense = said.count(DENSE) > 1
    rows = tuple(_row(found, row, moved, is_dense) for row in found.folded()[:MAX_ROWS])
    table, _ = without_common(Table(_HEADINGS, rows), ("dtype", "not equal"))
    return without_empty(table, _ALWAYS)


def _row(found: WeightsComparison, row: Row, moved: Mapping[str, float], is_dense: bool) -> TableRow:
    every = [found[entry.name] for entry in row.entries]
    sizes = [moved[entry.name] for entry in row.entries if entry.name in moved]
    shares = [found.low_rank[entry.name] for entry in row.entries if entry.name in found.low_rank]
    one = every[0]
    most = max(every, key=lambda each: each.changed_fraction)
    verdicts = {_verdict(each) for each in every} - ({DENSE} if is_dense else set())
    what = [
        verdicts.pop() if len(verdicts) == 1 else f"{len(verdicts)} kinds of change" if verdicts else "",
        row.unlike,
    ]
    what += [f"{100 * max(shares):.3g}% of the change lies in 8 directions"] if shares else []
    shapes, dtypes = (
        [str(pair[0]), *([str(pair[1])] if pair[0] != pair[1] else [])] for pair in (one.shapes, one.dtypes)
    )
    at_most = "≤ " if len(every) > 1 else ""
    cells = (
        legible(row.pattern) + (f" × {len(every):,}" if len(every) > 1 else ""),
        at_most + _percent(max(sizes)) if sizes else "",
        _most((each.norm_of_difference for each in every), at_most),
        _before(every, at_most),
        _most((each.max_abs for each in every), at_most),
        at_most + share_text(most.num_changed, most.count) if most.count and most.changed_fraction < _ALL else "",
        ", ".join(filter(None, what)),
        " and ".join(shapes),
        " and ".join(dtypes),
    )
    return TableRow(cells, alarm=_odd(every))


def _verdict(one: Comparison) -> str:
    """Return what has happened in a few words; to a single number, what it was and is."""
    return "{!r} to {!r}".format(*one.first_values) if one.count == 1 and one.first_values else one.verdict


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if 0 < share < 1 else f"{100 * share:,.0f}%"


def _most(figures: Iterable[float | int | None], at_most: str) -> str:
    known = [figure for figure in figures if figure is not None]
    return at_most + glance_text(max(known)) if known else ""


def _before(every: list[Comparison], at_most: str) -> str:
    """Return the norm before, and that it was none."""
    if all(one.norm == 0 for one in every):
        return "from 0"
    return _most((one.norm for one in every), at_most)


def _odd(every: list[Comparison]) -> str:
    """Return what is finite on one side alone."""
    counts = {
        "now": sum(one.only_finite_first for one in every), "before": sum(one.only_finite_second for one in every)
    }  # fmt: skip
    return ", ".join(f"{count:,} NaN or infinite {when}" for when, count in counts.items() if count)


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
