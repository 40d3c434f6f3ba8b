"""Small curves of a loop of steps: the norms of output and gradient, on a logarithmic scale."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from tensornp.models.names.quoted import cut
from tensornp.passes.records import MODULE, Call, Figures, PassRecord
from tensornp.render.layout.document import Part, small_print
from tensornp.render.layout.table import Drawn
from tensornp.render.passes.rows import GRAD, NORM, gradient_of, greatest_norm, main_value, norm_of
from tensornp.render.pictures.legend import sparkline_text
from tensornp.render.pictures.png import img_html, palette_png

MIN_STEPS = 3
_MAX_COLUMNS, _WIDTH_PX, _HEIGHT_PX, _MAX_NAME = 24, 144, 16, 30
_COLOURS = [(0, 0, 0), (128, 128, 128), (217, 119, 6)]
"""Transparent, a step, and a step that is not finite."""


def curves_part(record: PassRecord) -> Part:
    """Return a curve for each norm of the module that the block calls in each step."""
    calls: dict[int, Call] = {}
    for call in record.children(record.calls[0]):
        step = record.step_of(call)
        if call.kind == MODULE and step:
            calls[step] = call
    if len(calls) < MIN_STEPS:
        return Part()
    first = next(iter(calls.values()))
    name = cut(first.code or first.title, _MAX_NAME)
    outputs = [main_value(call.outputs) for call in calls.values()]
    figures = {NORM: [one.figures if one is not None else None for one in outputs]}
    figures[GRAD] = [gradient_of(call) for call in calls.values()]
    lines = (_line(f"{label} of {name}", [*calls], some) for label, some in figures.items() if any(some))
    return small_print(*lines)


def _line(label: str, steps: Sequence[int], figures: Sequence[Figures | None]) -> str:
    first_odd = next((i for i, one in enumerate(figures) if one is not None and one.is_odd), None)
    # The curve ends at the first NaN or Inf.
    shown = figures if first_odd is None else figures[: first_odd + 1]
    norms = np.asarray([norm_of(one) if one is not None and one.is_finite else None for one in shown], float)
    (known,) = np.nonzero(np.isfinite(norms))
    if not known.size:
        return ""
    first, last = (greatest_norm([one]) for i in known[[0, -1]] if (one := shown[i]) is not None)
    text = f"{label} by step: {first} to {last}"
    text += f", first NaN or Inf in step {steps[first_odd]:,}" if first_odd is not None else ""
    # More steps than columns: the largest of some.
    groups = np.array_split(norms, min(len(norms), _MAX_COLUMNS))
    highest, odd = np.asarray([np.fmax.reduce(group) for group in groups]), np.zeros(len(groups), bool)
    odd[-1] = first_odd is not None
    logs = np.log(np.where(highest > 0, highest, math.nan))
    low, high = np.nanmin(logs, initial=math.inf), np.nanmax(logs, initial=-math.inf)
    shares = (logs - low) / (high - low) if high > low else np.full(len(logs), 0.5)
    shares = np.where(odd, 1, np.nan_to_num(shares))
    bars = sparkline_text((shares + 0.05).tolist(), getattr(sys.stdout, "encoding", None) or "utf-8")
    tall = 1 + np.round(shares * (_HEIGHT_PX - 1))
    bars_in_rows = (np.arange(_HEIGHT_PX)[::-1, None] < tall) * np.where(odd, 2, 1)
    pixels = np.repeat(bars_in_rows, _WIDTH_PX // len(shares), axis=1).astype(np.uint8)
    picture = img_html(palette_png(pixels, _COLOURS), f"{text}, log scale", pixels.shape[1], _HEIGHT_PX)
    return Drawn(f"{text}  {bars}", f"{picture}&ensp;{text}, log scale")
