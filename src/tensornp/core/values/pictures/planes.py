"""Draw heat maps: planes of a tensor, the plane of a window, and the difference of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.form import Places
from tensornp.core.values.compare.numbers import differing
from tensornp.core.values.pictures.heatmap import Heatmap, heatmap_of
from tensornp.core.values.pictures.image_layout import plane_at
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window import Subject, Window, elements_in, subject_of, window_of
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stored import Box, StoredValues
from tensornp.errors import NoDataError

_MAX_SIDE, SIDE = 192, 96
"""Pixels of a side at most: of a plane on a page, and of the plane of a window."""


@outside_modes
def plane_map(obj: Any, index: tuple[int, ...] | int | None = None) -> Heatmap | None:
    """Return the heat map of the plane at `index`, or of the first one; None if there is none."""
    subject = subject_of(obj)
    shape = subject.shape
    at, title = plane_at(shape, index, subject.shard)
    if 0 in (*shape, len(shape)):
        return None
    window = window_of(shape, corner=(*at, *(0,) * min(len(shape), 2)))
    return overview_of(subject, window, max_side=_MAX_SIDE, title=title)


@outside_modes
def difference_map(a: Any, b: Any) -> Heatmap | None:
    first, second = subject_of(a), subject_of(b)
    return plane_map(difference_of(first, second)) if first.shape == second.shape else None


def difference_of(first: Subject, second: Subject) -> StoredValues:
    """Return ``second - first`` in float64 or complex128, read on request; equal elements give 0."""
    if first.shape != second.shape:
        raise NoDataError(f"shapes differ: {first.shape} and {second.shape}; open each of them with %weights")
    is_complex = any(one.info.dtype.is_complex for one in (first, second))
    dtype = np.complex128 if is_complex else np.float64

    @outside_modes
    @np.errstate(all="ignore")
    def read(box: Box) -> Any:
        places: Places = [range(part.start, part.stop) for part in box]
        a, b = (gathered(one.tensor, one.info, one.plan, places) for one in (first, second))
        a, b = a.astype(dtype), b.astype(dtype)
        return np.where(differing(a, b), b - a, 0)

    name = np.dtype(dtype).name
    return StoredValues(first.shape, name, lambda box: torch.from_numpy(read(box)), where="difference")


@outside_modes
def overview_of(
    subject: Subject,
    window: Window,
    is_wanted: Callable[[], bool] = lambda: True,
    *,
    max_side: int = SIDE,
    title: str = "",
) -> Heatmap | None:
    """Return the heat map of the plane of `window`, or None when it is no longer wanted."""
    is_complex = subject.plan.dtype.kind == "c"

    def read(rows: range, columns: range) -> Any:
        if not is_wanted():
            return None
        begins = {window.row_axis: rows.start, window.column_axis: columns.start}
        corner = tuple([begins.get(axis, at) for axis, at in enumerate(window.corner)])
        part = replace(window, corner=corner, num_rows=len(rows), num_columns=len(columns))
        found = elements_in(subject, part).reshape(len(rows), len(columns))
        return modulus_of(found) if is_complex else found

    heatmap = heatmap_of(window.plane, read, max_side, max_side)
    return None if heatmap is None else replace(heatmap, is_modulus=is_complex, title=title)
