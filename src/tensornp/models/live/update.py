"""How far a weight has moved, beside its norm or that of most weights: as a number, and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from tensornp.core.lowlevel.units import percent
from tensornp.models.outline.columns import ABOUT

NOT_FINITE = "is not known: not all of it is finite"


class Update(NamedTuple):
    """How far a weight has moved: the norm of the difference over that of the weight, in words, and how it is told.

    `size` is None, and there is no text, where the title says why it is not known.
    """

    size: float | None
    text: str
    title: str
    is_sampled: bool = False


class Moved(NamedTuple):
    """The norms of a difference and of the weight before, told from `num_read` of `numel` elements."""

    difference: float
    before: float
    num_read: int
    numel: int


def updates(found: Mapping[str, Moved | str]) -> dict[str, Update]:
    """Return how far weights have moved, each beside its own norm or the median of all, whichever is larger.

    As a comparison tells it: what was zero has not moved infinitely. Of what is a text, that is why it is not known.
    """
    moved = {name: one for name, one in found.items() if not isinstance(one, str)}
    norms = [one.before for one in moved.values() if one.before and math.isfinite(one.before)]
    median_norm = median(norms) if norms else 0.0
    told = {name: _update(one, median_norm) for name, one in moved.items()}
    # Where nothing is known there is nothing to say why.
    return told | {name: Update(None, "", one) for name, one in found.items() if isinstance(one, str) and one and told}


def _update(moved: Moved, median_norm: float) -> Update:
    """Return how far one weight has moved beside its own norm or `median_norm`, whichever is larger."""
    difference, before, num_read, numel = moved
    size = difference / (max(before, median_norm) or 1.0)
    if not math.isfinite(size):
        return Update(None, "", NOT_FINITE)
    is_sampled = num_read < numel
    text = "from 0" if difference and not before else ABOUT * is_sampled + percent(size)
    said = f"‖Δ‖ {difference:.3g} over the norm before, {before:.3g}"
    if before < median_norm:
        own = f", by {percent(difference / before)} of which it moved" if before else ""
        said = f"‖Δ‖ {difference:.3g} over the median of all norms, {median_norm:.3g}; its own was {before:.3g}{own}"
    elif not before:
        said = f"‖Δ‖ {difference:.3g}, and all norms were 0"
    title = f"from {num_read:,} of {numel:,} elements: {said}" if is_sampled else said
    return Update(size, text, title, is_sampled)
