"""Gather statistics and pictures of one tensor, or the comparison of two."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import values_of
from tensornp.core.summary.card import TensorSummary, summarize_line
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.compare.compare import Comparison, compare
from tensornp.core.values.locate import Location, locate
from tensornp.core.values.pictures.heatmap import Heatmap
from tensornp.core.values.pictures.planes import difference_map, plane_map
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import TensorStats
from tensornp.core.values.stored import Description, described
from tensornp.errors import TensornpError


class StatsSummary(NamedTuple):
    """The statistics of one tensor or array, as a page shows them."""

    name: str
    description: Description | str
    card: TensorSummary | None
    stats: TensorStats
    places: tuple[Location, ...] = ()
    picture: Heatmap | None = None
    axis: int | None = None
    by_axis: TensorStats | None = None
    axis_origin: int = 0
    has_pictures: bool = True


def summary_of_figures(found: TensorStats, options: DisplayOptions) -> StatsSummary:
    each = "" if np.ndim(found.count) == 0 else f" for each of {len(found.count):,} indices"
    return StatsSummary("", f"TensorStats{each}", None, found, has_pictures=options.has_pictures)


@modes.outside_modes
def summarize_stats(obj: Any, options: DisplayOptions, axis: int | None = None, name: str = "") -> StatsSummary:
    """Gather the statistics of a tensor or an array; raise as `stats` does."""
    obj = values_of(obj)
    # Refused before anything is read.
    by_axis = stats(obj, axis=axis) if axis is not None else None
    found = stats(obj)
    card = summarize_line(obj, options)._replace(stats=found) if is_tensor_like(obj) else None
    has_range = found.min is not None and found.min != found.max
    sought = {"nan": found.nan, "inf": found.num_infinite, "min": has_range, "max": has_range}
    places: list[Location] = []
    for what in [what for what, is_sought in sought.items() if is_sought]:
        # The elements of sparse and nested tensors have no places.
        with suppress(TensornpError):
            places.append(locate(obj, what))
    # The shown plane has the first NaN or infinity.
    odd, picture = next((one.indices[0] for one in places if one.what in ("nan", "inf") and one.indices), ()), None
    # A sparse tensor may be too large to be made dense.
    with suppress(TensornpError):
        picture = plane_map(obj, odd[:-2] or None) if options.has_pictures else None
    shard = card.info.shard if card is not None and card.info is not None else None
    origin = shard.offsets[axis] if shard is not None and shard.offsets is not None and axis is not None else 0
    return StatsSummary(
        name, described(obj), card, found, tuple(places), picture, axis, by_axis, origin, options.has_pictures
    )


class ComparisonSummary(NamedTuple):
    names: tuple[str, str]
    comparison: Comparison
    picture: Heatmap | None = None


def summary_of_comparison(found: Comparison, options: DisplayOptions) -> ComparisonSummary:
    return ComparisonSummary(("the first", "the second"), found)


@modes.outside_modes
def summarize_comparison(a: Any, b: Any, options: DisplayOptions, names: tuple[str, str]) -> ComparisonSummary:
    comparison, picture = compare(a, b), None
    with suppress(TensornpError):
        picture = difference_map(a, b) if options.has_pictures and comparison._num_changed else None
    return ComparisonSummary(names, comparison, picture)
