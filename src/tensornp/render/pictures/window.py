"""What the colours of a window mean, in words with numbers."""

from __future__ import annotations

from tensornp.core.values.shown.window_values import HIDDEN, NAN, NEGATIVE_INF, POSITIVE_INF, Seen

_SPECIAL = {"NaN": (NAN,), "Inf": (POSITIVE_INF, NEGATIVE_INF), "hidden": (HIDDEN,)}


def legend_of(seen: Seen, *, is_complex: bool = False) -> str:
    """Return the scale of a window and what has no place on it: ``−0.12 … 0.12 of this window · 2 NaN``."""
    counts = {name: sum(shade in shades for shade in seen.shades) for name, shades in _SPECIAL.items()}
    low, high = seen.scale
    limit = max(-low, high)
    if not seen.shades:
        scale = "no elements"
    elif limit:
        ends = f"{_short(-limit if low < 0 else 0.0)} … {_short(limit if high > 0 else 0.0)} of this window"
        scale = f"|x| {ends}" if is_complex else ends
    elif sum(counts.values()) < len(seen.shades):
        scale = "only 0 in this window"
    else:
        scale = "no finite value in this window"
    return " · ".join([scale, *(f"{count:,} {name}" for name, count in counts.items() if count)])


def _short(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")
