"""Records of a pass in one line each, as a list or a traceback shows them, from the facts that they are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from tensornp.core.lowlevel.text import counted, format_number, format_ordinal, legible
from tensornp.models.names.quoted import cut, cut_inside

_MAX_NAME, _MAX_HEAD, _MAX_TEXT = 60, 160, 100


class _Figures(Protocol):
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    @property
    def norm(self) -> float: ...
    @property
    def count(self) -> int: ...


class _Value(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def figures(self) -> _Figures | None: ...


def line_of(kind: str, name: str, facts: Iterable[str], told: str = "") -> str:
    """Return one line on a record: ``<Gradient head.bias, recomputed: what is told>``."""
    head = ", ".join(filter(None, (f"{kind} {cut_inside(name, _MAX_HEAD)}".strip(), *facts)))
    return f"<{head}: {legible(told)}>" if told else f"<{head}>"


def class_told(name: str, class_name: str) -> str:
    """Return the name of what was called, and its class: ``layers.5 (Linear)``; of what has no name, the class."""
    return f"{cut_inside(name, _MAX_NAME)} ({class_name})" if name else class_name


def nth_told(nth: int) -> str:
    """Return which call of a module it is, counted from 0; of the first, nothing."""
    return f"{format_ordinal(nth + 1)} call" if nth else ""


def sides_told(got: Sequence[_Value], gave: Sequence[_Value]) -> str:
    """Return what went in and came out: ``(2, 8) float32 → (2, 3)``, and what is not finite of that."""
    first, *_ = *got, None
    sides = [_side(got, ""), _side(gave, first.dtype if first is not None else "")]
    word = f", {odd}" if (odd := _odd(gave)) else ""
    return f"{' → '.join(sides).strip()}{word}" if any(sides) else ""


def shape_told(value: _Value, known: str = "") -> str:
    """Return a shape and a dtype, but for one that is known: ``(2, 8) float32``."""
    shape = sizes_told(value.shape)
    dtype = value.dtype.removeprefix("torch.")
    return f"{shape} {dtype}" if dtype and value.dtype != known else shape


def sizes_told(shape: Sequence[int | str]) -> str:
    """Return a shape as a tuple is written, with what stands for a size that is not known: ``(2, ?, 8)``."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def figures_told(one: _Figures | None) -> str:
    """Return the extremes and the norm: ``−1.5 … 2, norm 3``; of what is not finite, that."""
    if one is None or not one.count:
        return "no elements" if one is not None else ""
    if word := _word(one):
        return word
    ends = dict.fromkeys(format_number(end + 0.0) for end in (one.min, one.max))
    about = "≈" if len(ends) == 1 and one.min != one.max else ""
    norm = "" if math.isnan(one.norm) else f", norm {format_number(one.norm)}"
    return f"{about}{' … '.join(ends)}{norm}"


def text_told(text: str) -> str:
    """Return a text as a part of one line."""
    return cut(text, _MAX_TEXT)


def _side(values: Sequence[_Value], known: str) -> str:
    if not values:
        return ""
    more = f" and {counted(len(values) - 1, 'other')}" if len(values) > 1 else ""
    return shape_told(values[0], known) + more


def _odd(values: Sequence[_Value]) -> str:
    words = [_word(one.figures) for one in values if one.figures is not None and one.figures.count]
    return "NaN" if "NaN" in words else next(filter(None, words), "")


def _word(one: _Figures) -> str:
    if math.isnan(one.min) or math.isnan(one.max):
        return "NaN"
    return "" if math.isfinite(one.min) and math.isfinite(one.max) else "−Inf" if math.isfinite(one.max) else "Inf"
