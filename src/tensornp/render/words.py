"""Words and numbers as every view says them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 tensor``, ``1,024 tensors``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(names: list[str] | tuple[str, ...], max_names: int) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    left = len(names) - max_names
    return ", ".join(names[:max_names]) + (f" and {left:,} more" if left > 0 else "")
