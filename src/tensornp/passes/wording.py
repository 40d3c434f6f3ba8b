"""One-line texts on calls, values and statistics, for `repr`s, cards and sentences.

Records import this module, so their classes are not named here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted, format_number, legible
from tensornp.core.tensor.dtypes import largest, name_of
from tensornp.models.names.quoted import cut_inside

_RANGES = ("float16", "bfloat16", "float32", "float64")
_MAX_HEAD, _MAX_NAMES = 160, 3


def line_of(kind: str, name: str = "", facts: Iterable[str] = (), text: str = "") -> str:
    """Return the `repr` of a record: ``<Gradient head.bias: NaN>``."""
    head = ", ".join(filter(None, (f"{kind} {cut_inside(name, _MAX_HEAD)}".strip(), *facts)))
    return f"<{head}: {legible(text)}>" if text else f"<{head}>"


def shape_text(value: Any) -> str:
    """Return shape and dtype: ``(2, 8) float32``."""
    return f"{sizes_text(value.shape)} {value.dtype}".strip()


def sizes_text(shape: Sequence[int | str]) -> str:
    """Return a shape as a tuple, also with a placeholder for an unknown size: ``(2, ?, 8)``."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def figures_text(figures: Any) -> str:
    """Return extremes and norm: ``-1.5 … 2, norm 3``; only the word for non-finite values."""
    if figures.word or not figures.count:
        return str(figures.word or "no elements")
    ends = dict.fromkeys(format_number(end + 0.0) for end in (figures.min, figures.max))
    about = "≈" if len(ends) == 1 and figures.min != figures.max else ""
    norm = "" if math.isnan(figures.norm) or figures.is_norm_beyond else f", norm {format_number(figures.norm)}"
    return f"{about}{' … '.join(ends)}{norm}"


def zero_units_text(units: tuple[int, int, int], of: str = "") -> str:
    """Return the number of dead units: ``37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions``."""
    num_zero, num_units, num_positions = units
    verb = "was" if num_zero == 1 else "were"
    return f"{num_zero:,} of {counted(num_units, 'unit')}{of} {verb} 0 at all {num_positions:,} positions"


def number(value: float) -> str:
    """Return a number as a sentence has it: ``65,504``, ``-1.83``, ``Inf``; a negative zero as 0."""
    if 1e3 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return format_number(value + 0.0, 3).replace("inf", "Inf").replace("nan", "NaN")


def span(figures: Any) -> str:
    """Return the range of values: ``from -1 to 2``, ``0 throughout``."""
    ends = number(figures.min), number(figures.max)
    if ends[0] != ends[1]:
        return f"from {ends[0]} to {ends[1]}"
    return f"{ends[0]} throughout" if figures.min == figures.max else f"about {ends[0]} throughout"


def ranges_text(name: str, values: Iterable[Any]) -> str:
    """Return the ranges of values: ``its input ranged from -1 to 2``, or why one was not read."""
    values = list(values)
    spans = [span(one.figures) for one in values if one.figures is not None and one.figures.count]
    unread = next((one.note for one in values if one.figures is None and one.note), "")
    if unread or not spans:
        return f"{name} was not read: {unread}" if unread else ""
    if len(spans) == 1:
        return f"{name} {'was' if spans[0].endswith('throughout') else 'ranged'} {spans[0]}"
    ranges = " and ".join(one.removeprefix("from ") for one in spans[:_MAX_NAMES])
    return f"{name.replace('input', 'inputs', 1)}: {ranges}"


def range_left(output: Any, inputs: Iterable[Any], name: str) -> str:
    """Return that a result left the range of its dtype; empty if its finite inputs do not tell so."""
    known = [one.figures for one in inputs if one.figures is not None and one.figures.count and one.figures.is_finite]
    dtype = name_of(output.dtype)
    has_inf = output.figures is not None and output.figures.word in ("Inf", "−Inf")
    if not has_inf or dtype not in _RANGES or not known:
        return ""
    limit, reach = largest(dtype), max(abs(end) for one in known for end in (one.min, one.max))
    if dtype != "float16" and reach * reach <= limit:
        return ""
    return f"it left the range of {dtype} ({number(limit)}); {name} reached {number(reach)}"


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")


def at(source: Any) -> str:
    return f", {source}" if source is not None else ""
