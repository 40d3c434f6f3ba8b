"""Inputs and outputs of a call or an operator as cells of a table."""

from __future__ import annotations

from collections.abc import Sequence

from tensornp.models.outline.columns import ABOUT, at_a_glance
from tensornp.passes.outline import not_finite
from tensornp.passes.records import Figures, Value
from tensornp.passes.short import sizes_told


def main_value(values: Sequence[Value]) -> Value | None:
    """Return which of a call's values is told: one that is not finite, or the first that was read."""
    odd = (one for one in values if not_finite([one]))
    return next(odd, next((one for one in values if one.figures), values[0] if values else None))


def shapes(got: Value | None, gave: Value | None) -> str:
    """Return the shapes of an input and of an output.

    One where they are equal, or the axis in which they differ.
    """
    if got is None or gave is None:
        sides = [sizes_told(one.shape) if one is not None else "" for one in (got, gave)]
        return " → ".join(sides).strip() if any(sides) else ""
    differ = [i for i, (a, b) in enumerate(zip(got.shape, gave.shape, strict=False)) if a != b]
    if len(got.shape) != len(gave.shape) or len(differ) > 1:
        return f"{sizes_told(got.shape)} → {sizes_told(gave.shape)}"
    axes = [f"{a}" if a == b else f"{a} → {b}" for a, b in zip(got.shape, gave.shape, strict=True)]
    return sizes_told(axes)


def between(figures: Sequence[Figures]) -> str:
    """Return the extremes of all; of those that read alike, one, and a mark where they are not the same."""
    figures = [one for one in figures if one.count]
    if not figures:
        return ""
    if any(one.has_nan for one in figures):
        return "nan"
    ends = min(one.min for one in figures), max(one.max for one in figures)
    low, high = map(at_a_glance, ends)
    return f"{low} … {high}" if low != high else low if ends[0] == ends[1] else f"{ABOUT}{low}"
