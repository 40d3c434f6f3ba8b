"""Format numbers, counts, bytes and values of users as text."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterator
from itertools import groupby

import numpy as np

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_nbytes(nbytes: int) -> str:
    power = next((p for p in range(len(_UNITS)) if round(nbytes / 1024**p, 1) < 1024), len(_UNITS) - 1)
    unit = "byte" if nbytes == 1 else _UNITS[power]
    return f"{nbytes / 1024**power:.1f} {unit}".replace(".0 ", " ")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 tensor``, ``1,024 tensors``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def with_article(noun: str) -> str:
    """Return a noun behind its article: ``a float32``, ``an int8``, ``a uint8``."""
    is_an = noun.lower().startswith(("a", "e", "i", "o", "u", "nd")) and not noun.startswith(("uint", "Us"))
    return f"{'an' if is_an else 'a'} {noun}"


def format_number(value: float, digits: int = 4) -> str:
    """Return a number in four digits, or fewer: ``-2.125``, ``1.5e-05``."""
    return f"{value:.{digits}g}"


def number_ranges(numbers: list[int]) -> Iterator[str]:
    """Yield numbers in ascending order, those that follow each other as ``0..31``."""
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield f"{found[0]}..{found[-1]}" if len(found) > 1 else str(found[0])


def percent(share: float) -> str:
    # From there on, two digits are 100 percent.
    return f"{100 * share:.2g}%" if 0 < share < 0.995 else f"{100 * share:,.0f}%"


_MAX_QUOTED = 60


def legible(text: str, keep: str = "") -> str:
    """Return `text` with unprintable characters, except those in `keep`, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def quoted(value: object) -> str:
    """Return the `repr` of a value for an error, as one short line; tensors and arrays give their class."""
    torch = sys.modules.get("torch")
    try:
        if isinstance(value, (np.ndarray, getattr(torch, "Tensor", np.ndarray))):
            return f"<{type(value).__name__}>"
        shown = legible(_REPR.repr(value)[: _MAX_QUOTED + 1])
        return shown if len(shown) <= _MAX_QUOTED else shown[: _MAX_QUOTED - 1] + "…"
    except Exception:
        return f"<{type(value).__name__}>"


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, _MAX_QUOTED, _MAX_QUOTED
