"""Convert a window and the plane around it to plain data for the page."""

from __future__ import annotations

import math
from typing import Any

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.shards import ShardFacts, nth
from tensornp.core.values.pictures.planes import PlaneMap, may_be_read_unasked
from tensornp.core.values.shown.window import Window, window_text
from tensornp.core.values.shown.window_values import Seen, Subject
from tensornp.render.pictures.legend import heatmap_alt
from tensornp.render.pictures.png import data_uri, heatmap_png
from tensornp.render.pictures.window import legend_of, overview_words
from tensornp.widget.looked_at import LookedAt

SEEN_WHOLE = 16, 16
"""Rows and columns of a plane up to which it has no overview: the window shows about all of it."""


def window_data(looked_at: LookedAt, subject: Subject, window: Window, seen: Seen) -> dict[str, Any]:
    """Return the elements in a window with their places and texts."""
    info = subject.info
    return {
        "type": "window",
        "shape": window.shape,
        "axes": [window.row_axis, window.column_axis],
        "corner": window.corner,
        "size": [window.num_rows, window.num_columns],
        "part": subject.part,
        "num_parts": subject.num_parts,
        "dtype": dtypes.name_of(info.dtype),
        "device": str(info.device),
        "texts": seen.texts,
        "exact": seen.exact,
        "scale": seen.scale,
        "legend": " · ".join(
            [legend_of(seen, is_complex=info.dtype.is_complex), *([subject.shard.scope] if subject.shard else [])]
        ),
        "index": window_text(window, subject.shard),
        "in_whole": None if subject.shard is None else _in_whole(subject.shard, window),
        "overview": overview_offered(subject, window, looked_at.options.stats_nbytes),
        "absent": ["nan", "inf"] if _is_whole_numbers(subject) else [],
        **looked_at.expressions(subject, window),
    }


def _in_whole(shard: ShardFacts, window: Window) -> dict[str, Any]:
    """Return the visible indices of the whole and the origin of each axis.

    The origin is None for an axis in several pieces.
    """
    held = shard.held or ()
    return {
        "places": [
            [nth(runs, i) for i in some] if window.numel else [] for runs, some in zip(held, window.places, strict=True)
        ],
        "origins": [runs[0][0] if len(runs) == 1 else None for runs in held],
    }


def _is_whole_numbers(subject: Subject) -> bool:
    """Return whether values can be nothing but finite, whichever they are."""
    dtype = subject.info.dtype
    return subject.info.kind is STRIDED and not (dtype.is_floating_point or dtype.is_complex)


def overview_offered(subject: Subject, window: Window, unasked_nbytes: int) -> str:
    """Return the cost of an overview: "free", the bytes read, or ``""`` without one."""
    if not window.numel or all(size <= most for size, most in zip(window.plane, SEEN_WHOLE, strict=True)):
        return ""
    if may_be_read_unasked(subject, window.plane, unasked_nbytes):
        return "free"
    return f"reads {format_nbytes(math.prod(window.plane) * subject.info.itemsize)}"


def counts_places(looked_at: LookedAt, subject: Subject) -> bool:
    """Return whether all elements may be read to say which of how many NaN one is at."""
    return may_be_read_unasked(subject, subject.shape, looked_at.options.stats_nbytes)


def overview_data(overview: PlaneMap) -> dict[str, Any]:
    """Return the picture of a plane with its legend and alternative text."""
    heatmap, limits = overview.heatmap, overview.limits
    return {
        "type": "overview",
        "src": data_uri(heatmap_png(heatmap, limits)),
        "alt": heatmap_alt(heatmap, limits),
        "words": [[text, f"rgb{colour}"] for text, colour in overview_words(overview)],
        "plane": heatmap.shape,
    }
