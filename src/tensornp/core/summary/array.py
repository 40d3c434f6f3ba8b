"""Gather the content of an array's card."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.text import legible
from tensornp.core.memory.footprint import check_array
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.shown.preview import MAX_ELEMENTS
from tensornp.core.values.shown.print_options import printed_without_formatter, printing
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import NotReadError, TensornpError

_MASKED = (np.ma.MaskedArray, type(np.ma.masked))
_REFUSAL = "the values are not shown: printing them would run the code of their own classes"


@dataclass(frozen=True, slots=True)
class ArraySummary:
    """One array as a card shows it; `refusal` says why it is not printed.

    `strides` are in bytes. `note` says how the text differs from NumPy's.
    """

    type_name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    strides: tuple[int, ...]
    order: str
    is_writeable: bool
    text: str
    refusal: str
    stats: TensorStats | None = None
    note: str = ""


def summarize_array(array: np.ndarray, options: DisplayOptions, num_first: int | None = None) -> ArraySummary:
    """Return the summary of `array`, or of its first elements; never raises."""
    plain = np.ndarray.view(array, np.ndarray)
    text = refusal = note = ""
    try:
        if plain.dtype.hasobject:
            raise NotReadError(_REFUSAL)
        check_array(plain)
        shown = array if type(array) in _MASKED else plain
        make = partial(_printed, shown, options) if num_first is None else partial(_first_of, shown, options, num_first)
        text, note = printed_without_formatter(make)
    except TensornpError as error:
        refusal = str(error)
    except Exception as error:
        # A display never fails.
        refusal = error_text(error)
    return ArraySummary(
        type(array).__name__, plain.shape, legible(str(plain.dtype)), plain.nbytes, plain.strides, _order_of(plain),
        bool(plain.flags.writeable), text, refusal, note=note,
    )  # fmt: skip


def _printed(array: np.ndarray, options: DisplayOptions) -> str:
    now = np.get_printoptions()
    bound = np.printoptions(threshold=min(now["threshold"], MAX_ELEMENTS), formatter=now["formatter"])
    with printing(options.printoptions, array), bound:
        return repr(array)


def _first_of(array: np.ndarray, options: DisplayOptions, number: int) -> str:
    if array is np.ma.masked:
        return str(array)
    more = ", …" if array.size > number else ""
    some: Any = array.flat[:number]
    if isinstance(some, np.ma.MaskedArray):
        # NumPy prints each element by itself, and a word for hidden ones.
        each: Any = some.astype(object)
        return ", ".join(map(str, each.filled(str(np.ma.masked_print_option)))) + more
    with printing(options.printoptions, some):
        return np.array2string(some, separator=", ")[1:-1] + more


def _order_of(array: np.ndarray) -> str:
    if array.flags.c_contiguous:
        return "C-contiguous"
    return "Fortran-contiguous" if array.flags.f_contiguous else "not contiguous"
