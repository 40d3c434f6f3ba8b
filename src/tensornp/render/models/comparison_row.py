"""Make one row of a model comparison: name, figures and a short verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from tensornp.core.lowlevel.text import legible, percent
from tensornp.core.values.compare.compare import DENSE, Comparison
from tensornp.core.values.compare.where import element_text, element_with_nearly_all
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.rows import STEP, parameter_of, quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut_inside
from tensornp.models.outline.fold import Row
from tensornp.render.layout.table import TableRow
from tensornp.render.layout.words import share_text
from tensornp.render.pictures.stats_line import glance_text

_ALL = 0.99
"""The share of elements from which on nearly every one has changed."""
HEADINGS = ("name", "moved", "‖Δ‖", "‖before‖", "max |Δ|", "not equal", "shape", "dtype", "what")
_OUTLIER = 2
"""A weight is named that has moved more than so many times the median of its row."""
_FIGURES: dict[str, Callable[[float], str]] = {
    "moved": percent,
    "‖Δ‖": glance_text,
    "‖before‖": glance_text,
    "max |Δ|": glance_text,
    "not equal": lambda share: share_text(share, 1),
}
"""How the numbers are written."""
_MIN_APART = 8
"""Characters of a name before the place where it differs from others."""


def figures_of(found: WeightsComparison, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers of one row by their headings: for several weights, the largest."""
    every = [found[name] for name in names]
    told: dict[str, list[float | None]] = {
        "moved": [found.moved.get(name) for name in names],
        "‖Δ‖": [one._norm_of_difference for one in every],
        "‖before‖": [one._norm for one in every],
        "max |Δ|": [one.max_abs for one in every],
        "not equal": [one.changed_fraction if one.count else None for one in every],
    }
    known = {heading: [value for value in values if value is not None] for heading, values in told.items()}
    return {heading: max(values) for heading, values in known.items() if values}


def table_row(found: WeightsComparison, row: Row, shown: str) -> TableRow:
    """Return a row in all columns, under the name as it is shown."""
    names = [entry.name for entry in row.entries]
    every = [found[name] for name in names]
    figures, at_most = figures_of(found, names), "≤" if len(every) > 1 else ""
    texts = {heading: at_most * bool(value) + _FIGURES[heading](value) for heading, value in figures.items()}
    if "‖before‖" in texts and not figures["‖before‖"] and figures.get("‖Δ‖"):
        texts["‖before‖"] = "from 0"
    if figures.get("not equal", 1) >= _ALL:
        texts.pop("not equal", None)
    said = {
        "name": shown + (f" × {len(every):,}" if len(every) > 1 else ""),
        "what": ", ".join(filter(None, _what(found, row))),
        "shape": _both([one._shapes for one in every]),
        "dtype": _both([one._dtypes for one in every]),
        **texts,
    }
    name = legible(row.pattern)
    return TableRow(
        tuple(said.get(heading, "") for heading in HEADINGS),
        tuple(name if heading == "name" and name != shown else "" for heading in HEADINGS),
        alarm=_odd(dict(zip(names, every, strict=True))),
    )


def _both(pairs: Sequence[tuple[object, object]]) -> str:
    """Return the fact of both sides, once if equal; empty if weights differ in it."""
    return " and ".join(dict.fromkeys(map(str, pairs[0]))) if len(set(pairs)) == 1 else ""


def _what(found: WeightsComparison, row: Row) -> Iterator[str]:
    """Yield the parts of the verdict on a row."""
    names = [entry.name for entry in row.entries]
    if len(names) == 1:
        yield parameter_of(row.entries[0])
    first_names = dict.fromkeys(found._tied[name] for name in names if name in found._tied)
    if first_names:
        yield f"tied to {cut_inside(next(iter(first_names)), MAX_INSIDE)}"
    # The column "not equal" says how dense a change is.
    verdicts = {_verdict(found, entry) for entry in row.entries} - set(DENSE)
    yield next(iter(verdicts)) if len(verdicts) == 1 else f"{len(verdicts)} kinds of change" if verdicts else ""
    yield row.unlike
    most, is_outlier = moved_most(found, row)
    if is_outlier:
        yield " ".join(filter(None, ("most in", cut_inside(most, MAX_INSIDE), parameter_of(found._first[most]))))
    # It then lies in few directions for no other reason.
    element = element_with_nearly_all(found[most])
    shares = [found._low_rank[name] for name in names if name in found._low_rank]
    if element is not None:
        yield element_text(element)
    elif shares:
        yield f"{100 * min(shares):.3g}% of the change lies in 8 directions"


def moved_most(found: WeightsComparison, row: Row) -> tuple[str, bool]:
    """Return which weight of a row has moved most, and whether that is far more than the others."""
    sizes = {entry.name: found.moved.get(entry.name, 0.0) for entry in row.entries}
    most = max(sizes, key=sizes.__getitem__)
    return most, sizes[most] > _OUTLIER * median(sizes.values())


def _verdict(found: WeightsComparison, entry: WeightEntry) -> str:
    """Return a verdict in a few words, or both values of a single number."""
    one = found[entry.name]
    if one.count != 1 or not one._first_values:
        return one.verdict
    # The steps of optimizers are floats.
    is_step = quantity_of(entry) == STEP
    return " to ".join(f"{value:,.0f}" if is_step and value % 1 == 0 else repr(value) for value in one._first_values)


def cut_apart(names: Sequence[str], most: int = MAX_SHOWN) -> list[str]:
    """Shorten names as `cut_inside` does, but keep them distinct."""
    shown = [cut_inside(name, most) for name in names]
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(shown):
        alike.setdefault(text, []).append(i)
    for text, places in alike.items():
        own = [names[i] for i in places]
        first, last = min(own), max(own)
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        if len(set(own)) > 1 and same > _MIN_APART:
            rest = cut_apart([name[same - _MIN_APART :] for name in own], most - most // 3)
            for i, tail in zip(places, rest, strict=True):
                shown[i] = f"{text[: most // 3 - 1]}…{tail}"
    return shown


def _odd(every: Mapping[str, Comparison]) -> str:
    """Return the number of elements that are finite on one side only.

    Of several weights, in which the first is.
    """
    counts = {
        "now": sum(one._only_finite_first for one in every.values()),
        "before": sum(one._only_finite_second for one in every.values()),
    }
    said = ", ".join(f"{count:,} NaN or infinite {when}" for when, count in counts.items() if count)
    first = next((name for name, one in every.items() if one._is_odd), "")
    return f"{said} in {cut_inside(first, MAX_INSIDE)}" if said and len(every) > 1 else said
