"""One row of a comparison of two models: its name, its figures, and in words what has happened."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from tensornp.core.lowlevel.text import legible, percent
from tensornp.core.values.compare.compare import DENSE, Comparison
from tensornp.core.values.compare.where import element_text, element_with_nearly_all
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.states import STEP, parameter_of, quantity_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, cut_inside
from tensornp.models.outline.fold import Row
from tensornp.render.layout.table import TableRow
from tensornp.render.layout.words import share_text
from tensornp.render.pictures.stats_line import glance_text

_ALL = 0.99
"""The share of elements from which on nearly every one has changed."""
HEADINGS = ("name", "moved", "of own", "‖Δ‖", "‖before‖", "max |Δ|", "not equal", "shape", "dtype", "what")
_FROM_ZERO = sys.float_info.max
"""The share of nothing, by which it is sorted."""
_OUTLIER = 2
"""How many times the median of its row a weight has moved that is named."""


def figures_of(found: WeightsComparison, names: Sequence[str]) -> dict[str, float]:
    """Return by their headings the numbers that are told of weights of one row: of several, the largest."""
    every = [found[name] for name in names]
    told: dict[str, list[float | None]] = {
        "moved": [found.moved.get(name) for name in names],
        "of own": [_share_of_own(found, name) for name in names],
        "‖Δ‖": [one._norm_of_difference for one in every],
        "‖before‖": [one._norm for one in every],
        "max |Δ|": [one.max_abs for one in every],
        "not equal": [one.changed_fraction if one.count else None for one in every],
    }
    known = {heading: [value for value in values if value is not None] for heading, values in told.items()}
    return {heading: max(values) for heading, values in known.items() if values}


def _share_of_own(found: WeightsComparison, name: str) -> float | None:
    """Return the change relative to the norm; infinite for a weight that was zero.

    Where it is that of `moved` for all, it is told once.
    """
    if not found._has_floored or name not in found.moved:
        return None
    one = found[name]
    if one._norm == 0 and one._norm_of_difference:
        return _FROM_ZERO
    return one.relative if one.relative is not None and math.isfinite(one.relative) else None


def table_row(found: WeightsComparison, row: Row, shown: str, is_dense: bool) -> TableRow:
    """Return a row in all columns, under the name as it is shown.

    What is so of many (`is_dense`) is no news of one.
    """
    names = [entry.name for entry in row.entries]
    every = [found[name] for name in names]
    figures, at_most = figures_of(found, names), "≤" if len(every) > 1 else ""
    # Of the states of one quantity, each has a shape of its own.
    shapes, dtypes = (
        [str(pair[0]), *([str(pair[1])] if pair[0] != pair[1] else [])] if len(set(pairs)) == 1 else []
        for pairs in ([one._shapes for one in every], [one._dtypes for one in every])
        for pair in pairs[:1]
    )
    bounded = {heading for heading, value in figures.items() if 0 != value != _FROM_ZERO}
    texts = {heading: at_most * (heading in bounded) + _FIGURES[heading](value) for heading, value in figures.items()}
    if "‖before‖" in texts and not any(one._norm for one in every) and any(one._norm_of_difference for one in every):
        texts["‖before‖"] = "from 0"
    if figures.get("not equal", 1) >= _ALL:
        texts.pop("not equal", None)
    said = {
        "name": shown + (f" × {len(every):,}" if len(every) > 1 else ""),
        "what": ", ".join(filter(None, _what(found, row, is_dense))),
        "shape": " and ".join(shapes),
        "dtype": " and ".join(dtypes),
        **texts,
    }
    most, is_outlier = moved_most(found, row)
    name = legible(row.pattern)
    titles = {
        "what": legible(most) if is_outlier else "",
        "name": name if name != shown else "",
        "moved": f"of the median norm, {found._floor_of(most):.3g}" if found._is_floored(most) else "",
    }
    return TableRow(
        tuple(said.get(heading, "") for heading in HEADINGS),
        tuple(titles.get(heading, "") for heading in HEADINGS),
        alarm=_odd(dict(zip(names, every, strict=True))),
    )


def _what(found: WeightsComparison, row: Row, is_dense: bool) -> Iterator[str]:
    """Yield what has happened, and how odd ones differ from their neighbours."""
    if len(row.entries) == 1:
        yield parameter_of(row.entries[0])
    yield _tied(found, names_of(row))
    alike: dict[str, list[str]] = {}
    for entry in row.entries:
        alike.setdefault(_verdict(found, entry), []).append(entry.name)
    telling = {verdict: own for verdict, own in alike.items() if not (is_dense and verdict in DENSE)}
    if len(telling) == 1:
        yield from (verdict + _of_which(own, row) for verdict, own in telling.items())
    elif telling:
        yield f"{len(alike)} kinds of change"
    yield row.unlike
    most, is_outlier = moved_most(found, row)
    if is_outlier:
        yield " ".join(filter(None, ("most in", cut_inside(most, MAX_INSIDE), parameter_of(found._first[most]))))
    # It then lies in few directions for no other reason.
    element = element_with_nearly_all(found[most])
    if element is not None:
        yield element_text(element) + ("" if is_outlier else _of_which([most], row))
        return
    shares = {entry.name: found._low_rank[entry.name] for entry in row.entries if entry.name in found._low_rank}
    if shares:
        at_least = "at least " * (len(shares) > 1)
        share = f"{at_least}{100 * min(shares.values()):.3g}%"
        yield f"{share} of the change lies in 8 directions{_of_which([*shares], row)}"


def _of_which(names: Sequence[str], row: Row) -> str:
    """Return the affected weights of a row, unless all are."""
    if len(names) == len(row.entries):
        return ""
    return (
        f" in {cut_inside(names[0], MAX_INSIDE)}" if len(names) == 1 else f" in {len(names):,} of {len(row.entries):,}"
    )


def names_of(row: Row) -> list[str]:
    """Return the names of the weights of a row."""
    return [entry.name for entry in row.entries]


def _tied(found: WeightsComparison, names: Sequence[str]) -> str:
    """Return to which weight a row is tied, or how many of its names are further ones of what weights."""
    firsts = dict.fromkeys(found._tied[name] for name in names if name in found._tied)
    if not firsts:
        return ""
    num = sum(name in found._tied for name in names)
    which = "" if num == len(names) else f"{num:,} of {len(names):,} "
    first = cut_inside(next(iter(firsts)), MAX_INSIDE)
    return f"{which}tied to {first}" if len(firsts) == 1 else f"{which}tied to others"


def moved_most(found: WeightsComparison, row: Row) -> tuple[str, bool]:
    """Return which weight of a row has moved most, and whether that is far more than the others."""
    sizes = {entry.name: found.moved.get(entry.name, 0.0) for entry in row.entries}
    most = max(sizes, key=sizes.__getitem__)
    return most, sizes[most] > _OUTLIER * median(sizes.values())


def _verdict(found: WeightsComparison, entry: WeightEntry) -> str:
    """Return what has happened in a few words; to a single number, what it was and is."""
    one = found[entry.name]
    if one.count != 1 or not one._first_values:
        return one.verdict
    # The steps of optimizers are floats.
    is_step = quantity_of(entry) == STEP
    return " to ".join(f"{value:,.0f}" if is_step and value % 1 == 0 else repr(value) for value in one._first_values)


_FIGURES: dict[str, Callable[[float], str]] = {
    "moved": percent,
    "of own": lambda share: "from 0" if share == _FROM_ZERO else percent(share),
    "‖Δ‖": glance_text,
    "‖before‖": glance_text,
    "max |Δ|": glance_text,
    "not equal": lambda share: share_text(share, 1),
}
"""How the numbers are written."""


_MIN_APART = 8
"""Characters of a name before the place where it differs from others."""


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
    """Return what is finite on one side alone.

    Of several weights, in which the first is.
    """
    counts = {
        "now": sum(one._only_finite_first for one in every.values()),
        "before": sum(one._only_finite_second for one in every.values()),
    }
    said = ", ".join(f"{count:,} NaN or infinite {when}" for when, count in counts.items() if count)
    first = next((name for name, one in every.items() if one._is_odd), "")
    return f"{said} in {cut_inside(first, MAX_INSIDE)}" if said and len(every) > 1 else said
