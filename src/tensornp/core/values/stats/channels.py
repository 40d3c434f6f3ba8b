"""Rows and columns of a weight that are zero or stand out, by the norms of its slices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Along = tuple[int, int, int]
MIN_RATIO = 10.0
"""The ratio to the median norm from which a channel stands out."""
_MIN_CHANNELS, _MAX_CHANNELS = 8, 2**18
"""A median of fewer says little; more would make the result of a task large."""
_AXES = (0, 1)
"""Outputs and inputs of a weight of torch."""
_MAX_TOLD = 5


@dataclass(frozen=True, slots=True)
class ChannelNorms:
    """The channels of a weight that are zero throughout, or have 10 times the median norm of the others."""

    axis: int
    num: int
    num_dead: int
    dead: tuple[int, ...]
    num_outliers: int
    outliers: tuple[tuple[int, float], ...]


def layout_of(shape: tuple[int, ...], order: tuple[int, ...] | None, dtype: str) -> tuple[Along, ...]:
    """Return axis, size and elements of an index for the channels of a float weight in this order."""
    if order is None or len(shape) < 2 or not dtype.startswith(("float", "bfloat")):
        return ()
    return tuple(
        (axis, shape[axis], math.prod(shape[d] for d in order[order.index(axis) + 1 :]))
        for axis in _AXES
        if _MIN_CHANNELS <= shape[axis] <= _MAX_CHANNELS and math.prod(shape) > shape[axis]
    )


def add_by_index(sums: Array, numbers: Array, start: int, inner: int) -> None:
    size, runs = len(sums), numbers
    if inner > 1:
        ends = np.arange(inner - start % inner, numbers.size, inner)
        runs = np.add.reduceat(numbers, np.concatenate(([0], ends)))
    first = start // inner % size
    head, rest = runs[: size - first], runs[size - first :]
    whole = rest.size // size * size
    sums[first : first + head.size] += head
    sums += rest[:whole].reshape(-1, size).sum(0)
    sums[: rest.size - whole] += rest[whole:]


def norms_of(layout: tuple[Along, ...], found: Iterable[tuple[Array, ...]]) -> tuple[ChannelNorms, ...]:
    squares = [np.zeros(size) for _, size, _ in layout]
    for of_task in found:
        for whole, part in zip(squares, of_task, strict=True):
            np.add(whole, part, out=whole)
    told = []
    for (axis, size, _), whole in zip(layout, squares, strict=True):
        norms = np.sqrt(whole)
        dead = np.flatnonzero(norms == 0)
        alive = (norms > 0) & np.isfinite(norms)
        limit = MIN_RATIO * float(np.median(norms[alive])) if alive.any() else math.inf
        out = np.flatnonzero(alive & (norms >= limit))
        if alive.any() and (len(dead) or len(out)):
            largest = out[np.argsort(-norms[out], kind="stable")][:_MAX_TOLD]
            ratios = tuple((int(i), float(norms[i] / limit * MIN_RATIO)) for i in largest)
            first = tuple(dead[:_MAX_TOLD].tolist())
            told.append(ChannelNorms(axis, size, len(dead), first, len(out), ratios))
    return tuple(told)
