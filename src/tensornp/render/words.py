"""Words and numbers as every view says them."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_nbytes(nbytes: int) -> str:
    """Return bytes in the unit that reads best: ``576 KiB``."""
    power = next((p for p in range(len(_UNITS)) if round(nbytes / 1024**p, 1) < 1024), len(_UNITS) - 1)
    unit = "byte" if nbytes == 1 else _UNITS[power]
    return f"{nbytes / 1024**power:.1f} {unit}".replace(".0 ", " ")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 tensor``, ``1,024 tensors``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(names: list[str] | tuple[str, ...], max_names: int) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    left = len(names) - max_names
    return ", ".join(names[:max_names]) + (f" and {left:,} more" if left > 0 else "")
