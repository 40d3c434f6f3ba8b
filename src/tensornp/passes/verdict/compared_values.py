"""Two values of two passes side by side: their shapes, their dtypes and their figures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tensornp.core.lowlevel.text import format_number
from tensornp.core.tensor.dtypes import name_of
from tensornp.passes import short
from tensornp.passes.records import HELD, NOT_CALLED, Figures, Gradient, Value

SHAPE, DTYPE, FIGURES, READ = "shape", "dtype", "figures", "not there"
SIDES = "first", "second"
_ROUNDING = 1e-6
"""By which two sums of one tensor may differ on a device that adds in no order of its own; a CPU has one."""
CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Difference:
    """In what two values differ.

    Attributes
    ----------
    kind : str
        "shape", "dtype", "figures", "not there" (of a gradient), or "status" (of a call).
    told : str
        In words, with the numbers of both.
    relative : float
        By how much, where figures differ: the difference of the norms over the greater one, or that of the least or the
        greatest elements over the greatest modulus of both, whichever is more. NaN where a NaN is on one side alone.
    figures : tuple of Figures or None
        Those of the first and those of the second.
    """

    kind: str
    told: str
    relative: float = math.nan
    figures: tuple[Figures | None, Figures | None] = (None, None)


def difference_of(a: Value, b: Value) -> Difference | None:
    """Return in what two values differ; None where nothing is known to."""
    if a.shape != b.shape or a.dtype != b.dtype:
        sides, figures = f"{short.shape_told(a)} and {short.shape_told(b)}", (a.figures, b.figures)
        if a.shape != b.shape:
            return Difference(SHAPE, sides, figures=figures)
        cast = _other_figures(a.figures, b.figures, 0.0) if a.figures and b.figures else None
        return Difference(DTYPE, sides, cast.relative if cast is not None else math.nan, figures)
    return _other_figures(a.figures, b.figures, _slack(a, b)) if a.figures and b.figures else None


def difference_back(a: Value, b: Value) -> Difference | None:
    """Return in what the gradients differ that came back for two values; of values that differ in shape, nothing."""
    if a.shape != b.shape:
        return None
    found = _other_gradient(a.grad, b.grad, _slack(a, b))
    if found is None or a.dtype == b.dtype or found.kind == READ:
        return found
    return replace(found, told=f"{found.told}, as {name_of(a.dtype)} and {name_of(b.dtype)}")


def difference_of_gradients(a: Gradient, b: Gradient, *, are_on_cpu: bool) -> Difference | None:
    """Return in what the gradients of a parameter differ; of what was not read, nothing."""
    return None if are_unread(a, b) else _other_gradient(a.figures, b.figures, 0.0 if are_on_cpu else _ROUNDING)


def are_unread(a: Gradient, b: Gradient) -> bool:
    """Return whether it is not known if gradients are equal: one was not read, or their figures are of other parts."""
    if a.figures is not None and b.figures is not None:
        return a.note != b.note
    notes = {one.note for one in (a, b) if one.figures is None}
    return not notes <= {"", NOT_CALLED, *([HELD] if a.figures is b.figures else [])}


def in_one_alone(one: Difference) -> str:
    """Return on which side a gradient came back: "first", "second", or nothing where it did on both."""
    return SIDES[one.figures[0] is None] if one.kind == READ else ""


def _slack(a: Value, b: Value) -> float:
    return 0.0 if a.device == b.device == CPU else _ROUNDING


def _other_gradient(a: Figures | None, b: Figures | None, slack: float) -> Difference | None:
    if a is None and b is None:
        return None
    if a is None or b is None:
        return Difference(READ, f"none came back in the {'first' if a is None else 'second'}", figures=(a, b))
    return _other_figures(a, b, slack)


def _other_figures(a: Figures, b: Figures, slack: float) -> Difference | None:
    """Return in what figures differ: of the same values, they are the same, but for the rounding of a sum."""
    same_ends = _is_same(a.min, b.min) and _is_same(a.max, b.max)
    same_sums = _is_near(a.norm, b.norm, slack * abs(a.norm)) and _is_near(a.sum, b.sum, slack * _size(a))
    if a.count == b.count and same_ends and same_sums:
        return None
    if a.has_nan != b.has_nan:
        side = "first" if a.has_nan else "second"
        return Difference(FIGURES, f"NaN in the {side} alone", math.nan, (a, b))
    name, relative, scale = _furthest(a, b)
    numbers = getattr(a, name), getattr(b, name)
    is_own = name == "norm" or scale == max(map(abs, numbers))
    of = "relative" if is_own else "of norm × √count" if name == "sum" else "of the greatest modulus"
    ends = " and ".join(format_number(one + 0.0, 7) for one in numbers)
    return Difference(FIGURES, f"{name} {ends}, {format_number(relative, 2)} {of}", relative, (a, b))


def _furthest(a: Figures, b: Figures) -> tuple[str, float, float]:
    """Return which figure differs most, how much and of what: norms, least or greatest elements, else the sums."""
    reach = max(abs(end) for one in (a, b) for end in (one.min, one.max))
    found = [
        (name, abs(x - y) / scale if math.isfinite(x - y) and scale else math.inf, scale)
        for name, scale in (("norm", max(abs(a.norm), abs(b.norm))), ("min", reach), ("max", reach))
        for x, y in [(getattr(a, name), getattr(b, name))]
        if not _is_same(x, y)
    ]
    size = max(_size(a), _size(b)) or 1.0
    return max(found, key=lambda one: one[1]) if found else ("sum", abs(a.sum - b.sum) / size, size)


def _size(one: Figures) -> float:
    """Return how large the sum of moduli may be."""
    return abs(one.norm) * math.sqrt(one.count)


def _is_same(x: float, y: float) -> bool:
    return x == y or (math.isnan(x) and math.isnan(y))


def _is_near(x: float, y: float, slack: float) -> bool:
    return _is_same(x, y) or abs(x - y) <= slack
