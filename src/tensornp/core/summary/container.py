"""Choose the summary of an object: the card of an array, or the table of a container of tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_array, is_tensor
from tensornp.core.lowlevel.text import legible, quoted
from tensornp.core.memory.extents import Piece, counted_once
from tensornp.core.memory.footprint import footprint_of, is_freed
from tensornp.core.summary.card import Look, StatsBudget, TensorSummary, summarize, summarize_line
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.containers import BUILT_IN, is_container, is_seen, leaves
from tensornp.core.tensor.form import Step
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.paths import Path, expression_of, first_step, is_plain_value, shortened
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of
from tensornp.core.values.shown.preview import MAX_ELEMENTS, printing, texts_of
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import NotReadError, TensornpError

_REFUSAL = "the values are not shown: printing them would run the code of their own classes"


class ArraySummary(NamedTuple):
    """One array as a card shows it; `refusal` says why it is not printed."""

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


def summarize_array(array: np.ndarray, options: DisplayOptions, num_first: int | None = None) -> ArraySummary:
    plain = np.ndarray.view(array, np.ndarray)
    text = refusal = ""
    try:
        if plain.dtype.hasobject:
            raise NotReadError(_REFUSAL)
        if is_freed(plain):
            raise NotReadError("the memory of this array was freed by the tensor that it was made of; make it again")
        # Asking for `np.ma.MaskedArray` would import it for the first card.
        is_masked = type(array).__module__.startswith("numpy.ma")
        shown = array if is_masked else plain
        if num_first is not None:
            text = ", ".join(texts_of(shown.flat[:num_first], options.printoptions) + ["…"] * (shown.size > num_first))
        else:
            now = np.get_printoptions()
            bound = np.printoptions(threshold=min(now["threshold"], MAX_ELEMENTS), formatter=now["formatter"])
            with printing(options.printoptions, shown), bound:
                text = repr(shown)
    except Exception as error:
        # A display never fails.
        refusal = str(error) if isinstance(error, TensornpError) else error_text(error)
    order = "Fortran-contiguous" if plain.flags.f_contiguous else "not contiguous"
    order = "C-contiguous" if plain.flags.c_contiguous else order
    return ArraySummary(
        type(array).__name__, plain.shape, legible(str(plain.dtype)), plain.nbytes, plain.strides, order,
        bool(plain.flags.writeable), text, refusal,
    )  # fmt: skip


MAX_LEAVES = 20_000
"""Leaves of a container that are counted at most."""
MAX_LISTED = 16
"""Tensors of a container up to which each has a row."""
FIRST_VALUES = 3
_NUMBERS = {int, float, complex, bool}
_WORDS_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_SHOWN_CHARACTERS = 40
Leaf = tuple[Path | None, Any]


class Row(NamedTuple):
    name: str
    tensor: TensorSummary | None
    text: str
    array: ArraySummary | None = None


class ContainerSummary(NamedTuple):
    """The table of a container: `num_left_out` leaves are left out after the first `num_first`."""

    type_name: str
    length: int
    rows: tuple[Row, ...]
    num_first: int
    num_left_out: int
    num_tensors: int
    nbytes: int
    is_complete: bool
    num_arrays: int = 0


@modes.outside_modes
def summarize_container(container: Any, options: DisplayOptions) -> ContainerSummary:
    """Return the summary of a container: its first and last leaves, and totals over all of them."""
    found, is_complete = _leaves_of(container)
    num_last = options.max_rows // 4 if len(found) > options.max_rows else 0
    first = found[: options.max_rows - num_last]
    shown = first + found[len(found) - num_last :]
    tensors = [leaf for _, leaf in found if is_tensor_like(leaf)]
    arrays = [leaf for _, leaf in found if is_array(leaf)]
    keys = [first_step(path)[1] for path, _ in found if path is not None]
    has_text_keys = all(type(step) is tuple and type(step[0]) is str for step in keys)
    budget = StatsBudget(options.stats_nbytes)
    rows = tuple(_row(_name(path, has_text_keys=has_text_keys), leaf, options, budget) for path, leaf in shown)
    known = [leaf for leaf in tensors if stand_in_of(leaf) is None]
    # A stand-in may compute its tensor: only those with a row were asked.
    infos = [row.tensor.info for row in rows if row.tensor is not None and row.tensor.info is not None]
    asked = [info.nbytes for info in infos if info.kind.step is Step.STAND_IN]
    # Leaves below one item share its step; `len` of a foreign class may mean something else.
    length = len({id(first_step(path)) for path, _ in found if path is not None})
    base: Any = next((base for base in BUILT_IN if issubclass(type(container), base)), None)
    if base is not None:
        length = base.__len__(container)
    nbytes = _nbytes({id(leaf): leaf for leaf in (*known, *arrays)}.values()) + sum(asked)
    return ContainerSummary(
        type_name=type(container).__name__,
        length=length,
        rows=rows,
        num_first=len(first),
        num_left_out=len(found) - len(shown),
        num_tensors=len(tensors),
        nbytes=nbytes,
        is_complete=is_complete and len(known) + len(asked) == len(tensors),
        num_arrays=len(arrays),
    )


class Unshown(NamedTuple):
    type_name: str
    reason: str


def summary_of(obj: Any, options: DisplayOptions, look: Look | None = None) -> Any:
    """Return the summary of a tensor, an array or a container; None for other objects."""
    if is_tensor_like(obj):
        return summarize(obj, options, look)
    if is_array(obj):
        return summarize_array(obj, options)
    return summarize_container(obj, options) if is_container(obj) and is_seen(obj) else None


def is_long(obj: Any) -> bool:
    """Return whether a container has so many tensors, and little else, that it is shown as weights are."""
    if is_tensor_like(obj) or is_array(obj) or not (is_container(obj) and is_seen(obj)):
        return False
    found, is_complete = _leaves_of(obj)
    # A stand-in may compute its tensor, and would be asked.
    num_tensors = sum(is_tensor(leaf) for _, leaf in found)
    is_other = any(is_array(leaf) or stand_in_of(leaf) is not None for _, leaf in found)
    return is_complete and not is_other and MAX_LISTED < num_tensors > len(found) / 2


def _leaves_of(container: Any) -> tuple[list[Leaf], bool]:
    found: list[Leaf] = []
    is_complete = False
    # A container that another thread changes is shown as far as it was read.
    with suppress(Exception):
        found.extend(islice(leaves(container, is_leaf=_are_numbers), MAX_LEAVES + 1))
        is_complete = len(found) <= MAX_LEAVES
    # An empty container is a leaf of itself.
    return [one for one in found[:MAX_LEAVES] if one[0] is not None or one[1] is not container], is_complete


def _are_numbers(obj: Any) -> bool:
    """Return whether `obj` is a list or tuple of several plain numbers, which one row shows."""
    return type(obj) in (list, tuple) and len(obj) > 1 and _NUMBERS.issuperset(map(type, obj))


def _name(path: Path | None, *, has_text_keys: bool) -> str:
    """Return the name of a row, without brackets and quotes if all keys are texts."""
    if path is None or not has_text_keys:
        return expression_of(path)
    root = first_step(path)
    return legible(shortened(root[1][0])) + expression_of(path).removeprefix(expression_of(root))


def _nbytes(found: Iterable[Any]) -> int:
    pieces: list[Piece] = []
    unplaced = 0
    for one in found:
        # The row of an object that raises says what is wrong.
        with suppress(Exception):
            extents, _ = footprint_of(one)
            for part in extents:
                low, high = part.bounds
                # An expanded element counts once.
                nbytes = min(math.prod(part.shape) * part.itemsize, high - low)
                pieces.append(Piece(part.device, low, high, nbytes, 0))
            if not extents and not is_array(one):
                unplaced += inspect(one)._nbytes_here
    return unplaced + counted_once(pieces)[1]


def _row(name: str, leaf: Any, options: DisplayOptions, budget: StatsBudget) -> Row:
    if is_array(leaf):
        array = summarize_array(leaf, options, FIRST_VALUES)
        if type(leaf) is np.ndarray:
            array = array._replace(stats=budget.nonfinite(leaf, None))
        return Row(name, None, array.text or array.refusal, array)
    if not is_tensor_like(leaf):
        return Row(name, None, _short_text(leaf))
    summary = summarize_line(leaf, options, FIRST_VALUES)
    if summary.info is not None and (summary.plan is not None or summary.preview is not None):
        summary = summary._replace(stats=budget.nonfinite(leaf, summary.info))
    return Row(name, summary, summary.preview.text if summary.preview else "")


def _short_text(leaf: Any) -> str:
    """Return a few words for another object; its own repr is called only for plain types."""
    if isinstance(leaf, (str, bytes)) and is_plain_value(leaf):
        text = quoted(leaf[:_SHOWN_CHARACTERS])
        return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    if is_plain_value(leaf) or _are_numbers(leaf) or type(leaf) in (*_WORDS_OF_TORCH, type, type(torch.Tensor)):
        return quoted(leaf)
    of_class = f"({type(leaf).__name__})"
    return f"{leaf!s} {of_class}" if type(leaf).__module__ == "numpy" and isinstance(leaf, np.generic) else of_class
