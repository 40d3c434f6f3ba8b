"""Bytes in the unit that reads best."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_nbytes(nbytes: int) -> str:
    """Return bytes in the unit that reads best: ``576 KiB``."""
    power = next((p for p in range(len(_UNITS)) if round(nbytes / 1024**p, 1) < 1024), len(_UNITS) - 1)
    unit = "byte" if nbytes == 1 else _UNITS[power]
    return f"{nbytes / 1024**power:.1f} {unit}".replace(".0 ", " ")
