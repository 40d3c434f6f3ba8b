"""Two models side by side: what is missing, and of what differs how much, what moved most first."""

from __future__ import annotations

from collections.abc import Iterator

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted
from tensornp.core.values.compare.compare import Comparison
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.render.layout.document import Document, Lines, headed
from tensornp.render.layout.table import Table, TableRow, without_common, without_empty
from tensornp.render.layout.words import listed, share_text
from tensornp.render.pictures.stats_line import number_text

MAX_ROWS = 40
"""Weights that are listed."""
MAX_NAMED = 8
"""Names in a line."""
_HEADINGS = ("name", "verdict", "notes", "relative", "largest |Δ|", "not equal", "shape", "dtype")
_ALWAYS = ("name", "verdict")


def weights_comparison_document(found: WeightsComparison) -> Document:
    """Return the verdict over a table, and under it what only one side has."""
    head = headed(_sources(found), found.told())
    return Document((head, _table(found), Lines(tuple(_said(found)))))


def _sources(found: WeightsComparison) -> list[tuple[str, str]]:
    """Return what was compared, and which of them it is where both are called the same."""
    first, second = map(legible, found.sources)
    sides = (" (first)", " (second)") if first == second else ("", "")
    return list(zip((first, second), sides, strict=True))


def _table(found: WeightsComparison) -> Table:
    changed = found.changed()[:MAX_ROWS]
    rows = [TableRow(tuple(_row(found, name))) for name in changed]
    table, _ = without_common(Table(_HEADINGS, tuple(rows)), ("dtype",))
    return without_empty(table, _ALWAYS)


def _row(found: WeightsComparison, name: str) -> Iterator[str]:
    one, share = found[name], found.low_rank.get(name)
    direction = f"{100 * share:.3g}% of the change lies in 8 directions" if share is not None else ""
    yield legible(name)
    yield one.verdict
    yield ", ".join(filter(None, [_odd(one), direction]))
    yield f"{one.relative:.3g}" if one.relative is not None else ""
    yield number_text(one.max_abs) if one.max_abs is not None else ""
    yield share_text(one.num_changed, one.count) if one.count else ""
    yield str(one.shapes[0]) if one.shapes[0] == one.shapes[1] else f"{one.shapes[0]} and {one.shapes[1]}"
    yield one.dtypes[0] if one.dtypes[0] == one.dtypes[1] else f"{one.dtypes[0]} and {one.dtypes[1]}"


def _odd(one: Comparison) -> str:
    """Return what is finite on the other side alone."""
    said = [
        f"{count:,} NaN or infinite in the {side}"
        for count, side in ((one.only_finite_first, "second"), (one.only_finite_second, "first"))
        if count
    ]
    return ", ".join(said)


def _said(found: WeightsComparison) -> list[str]:
    changed = found.changed()
    same = sum(found[name].same_bits for name in found)
    equal = sum(found[name].equal for name in found) - same
    lines = [
        f"… {counted(len(changed) - MAX_ROWS, 'more weight')} that differ; tnp.compare(...).changed() names them"
        if len(changed) > MAX_ROWS else "",
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
