"""Print an array as NumPy prints the whole, from the printed elements alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.to_numpy import array_of, masked_array
from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.memory.footprint import check_parts
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import Places, Step, TooManyError
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import SPARSE, form_of
from tensornp.core.values.stored import StoredValues
from tensornp.errors import NotReadError

AUTO: Mapping[str, Any] = {"precision": "auto"}
"""Compact print options if NumPy's are at their defaults, otherwise NumPy's."""
_DEFAULTS: dict[str, Any] = {
    "precision": 8, "suppress": False, "floatmode": "maxprec", "linewidth": 75,
    "formatter": None, "override_repr": None,
}  # fmt: skip
_COMPACT_PRECISION = 4
_COMPACT_LINEWIDTH = 100
COMPACT_RANGE = (1e-5, 1e5)
"""Largest magnitudes of an array that is printed without an exponent."""


def printing(own: Mapping[str, Any], values: Any) -> AbstractContextManager[Any]:
    chosen = dict(own)
    if own.get("precision") == "auto":
        del chosen["precision"]
        now = np.get_printoptions()
        # NumPy 2.0 has no `override_repr`.
        if {name: now.get(name) for name in _DEFAULTS} == _DEFAULTS:
            chosen = {"linewidth": _COMPACT_LINEWIDTH, **_digits_for(values), **chosen}
    if not chosen:
        return nullcontext()
    # NumPy drops a formatter that is not passed on.
    return np.printoptions(**{**chosen, "formatter": np.get_printoptions()["formatter"]})


def _digits_for(values: Any) -> dict[str, Any]:
    """Return the precision, with more digits below 0.1, and whether numbers have no exponent."""
    options = np.get_printoptions()
    is_whole = math.prod(values.shape) <= options["threshold"] or not options["edgeitems"]
    outer = values if is_whole else values[np.ix_(*places_of(values.shape, options["edgeitems"]))]
    # A masked array has this method; its class would import numpy.ma.
    numbers = outer.compressed() if hasattr(outer, "compressed") else outer
    if numbers.dtype.kind not in "fc":
        return {"precision": _COMPACT_PRECISION}
    magnitudes = np.abs(numbers[np.isfinite(numbers)])
    nonzero = magnitudes[magnitudes > 0]
    if not nonzero.size:
        return {"precision": _COMPACT_PRECISION, "suppress": True}
    least, largest = float(nonzero.min()), float(nonzero.max())
    low, high = COMPACT_RANGE
    precision = _COMPACT_PRECISION + max(-math.floor(math.log10(largest)) - 1, 0)
    # An element that would print as 0 keeps its exponent.
    if low <= largest < high and least >= 0.5 * 10.0**-precision:
        return {"precision": precision, "suppress": True}
    return {"precision": _COMPACT_PRECISION}


def places_of(shape: tuple[int, ...], edgeitems: int = 0) -> Places:
    """Return the indices of the outer elements along each dimension, with one for the ellipsis; all if 0."""
    return [
        [*range(edgeitems), 0, *range(size - edgeitems, size)] if edgeitems and size > 2 * edgeitems else range(size)
        for size in shape
    ]


class Preview(NamedTuple):
    """The text of an array: ``repr`` of the converted array unless `note` says otherwise."""

    text: str
    note: str = ""


MAX_ELEMENTS = 100_000
"""Elements that a card prints at most, whatever the print options ask."""
_SEPARATOR = "\x1f"
"""Between values that are taken outside_modes again: a formatter of the user's may write commas."""
_NO_LINE_BREAK = 10**9
_MAX_PARTS = 40
_EDGEITEMS = 3
"""Those of NumPy, if the print options ask for too many."""
_AFTER_GATHERING = (Step.TO_HOST, Step.WIDEN, Step.VIEW_BITS, Step.CAST)
"""The steps that are left to do once the elements are gathered."""


@outside_modes
def preview(
    tensor: torch.Tensor | StoredValues,
    info: TensorInfo,
    plan: ConversionPlan,
    *,
    max_elements: int,
    printoptions: Mapping[str, Any] = AUTO,
) -> Preview:
    """Return NumPy's text of the array that `plan` would give.

    Only the printed elements are read, into new memory. A kind that cannot be indexed is laid out; if it is too large,
    its stored parts are shown.
    """
    held, inner = what_it_stands_for(tensor, info)
    try:
        return _preview(held, inner, plan, max_elements, printoptions)
    except TooManyError as reason:
        return _stored(held, inner, max_elements, printoptions, str(reason))
    except NotReadError as reason:
        return Preview("", str(reason))


def what_it_stands_for(tensor: Any, info: TensorInfo) -> tuple[torch.Tensor, TensorInfo]:
    while info.kind.step is Step.STAND_IN and info.inner is not None:
        tensor, info = info.kind.inner(tensor), info.inner
    return tensor, info


def _preview(
    tensor: torch.Tensor, info: TensorInfo, plan: ConversionPlan, max_elements: int, own: Mapping[str, Any]
) -> Preview:
    if info.kind.gives_several:
        parts = list(tensor.unbind())
        most, shown = max(1, max_elements // _MAX_PARTS), parts[:_MAX_PARTS]
        each = [_preview(part, inspect(part), plan, most, own).text for part in shown]
        if len(parts) == len(shown):
            return Preview(f"[{', '.join(each)}]")
        return Preview(f"[{', '.join(each)}, ...]", f"the first {_MAX_PARTS} of {len(parts):,} parts are shown")
    shape = info._array_shape
    if 0 in shape:
        # A list of the indices of an empty tensor may have billions.
        empty = np.empty(shape, plan.dtype)
        return Preview(_repr(np.ma.MaskedArray(empty, empty.astype(bool)) if info.kind.is_masked else empty, own))
    options = np.get_printoptions()
    asked = options["edgeitems"] if math.prod(shape) > options["threshold"] else None
    for edgeitems in (asked, _EDGEITEMS, 1):
        if _count_read(shape, edgeitems) <= max_elements:
            break
    # In many dimensions, the one that stands for each ellipsis counts.
    if _count_read(shape, edgeitems, 1) > 10 * max_elements:
        raise NotReadError(
            f"the values are not shown: in {len(shape)} dimensions, even the outermost are more than {max_elements:,}; "
            "show t.flatten() or a slice"
        )
    note = f"print options ask for more than {max_elements:,} elements; only the outer ones are shown"
    note = note if edgeitems != asked else ""
    # With 0 edge items NumPy still measures all elements to align the one that it prints.
    is_whole = not edgeitems or all(size <= 2 * edgeitems for size in shape)
    # A masked array has rules of its own for what it leaves out.
    if edgeitems is None or is_whole or (info.kind.is_masked and info.numel <= max_elements):
        return Preview(_repr(gathered(tensor, info, plan, places_of(shape)), own), note)
    corners = gathered(tensor, info, plan, places_of(shape, edgeitems))
    with printing(own, corners):
        # A formatter is dropped unless it is passed on; a repr of the user's own must not see mere corners.
        with np.printoptions(threshold=0, edgeitems=edgeitems, formatter=np.get_printoptions()["formatter"]):
            text = repr(corners)
        if info.kind.is_masked:
            return Preview(text, f"the outer elements of a masked array of shape {info.shape}")
        return Preview(_with_shape(text, corners.shape, shape), note)


def _stored(tensor: Any, info: TensorInfo, max_elements: int, own: Mapping[str, Any], reason: str) -> Preview:
    """Return the text of the tensors that a tensor stores; if there are none, `reason` is the note."""
    if info.kind is SPARSE:
        names = ("indices", "values") if info.layout == torch.sparse_coo else ("pointers", "indices", "values")
        stored = dict(zip(names, SPARSE.parts(tensor.detach()), strict=True))
    else:
        stored = {name: value for name, value in own_attributes(tensor) if is_tensor(value)}
    texts = []
    for name, part in stored.items():
        facts = inspect(part)
        lines = _preview(part, facts, decide(facts), max_elements, own).text.split("\n")
        texts.append(f"\n{' ' * len(f'{name} = ')}".join([f"{name} = {lines[0]}", *lines[1:]]))
    note = f"stored parts only; t{info.kind.indexed_by} would have {info.numel:,} elements"
    return Preview("\n".join(texts), note if texts else reason)


def _repr(array: Any, own: Mapping[str, Any]) -> str:
    with printing(own, array):
        return repr(array)


@outside_modes
def first_values(
    tensor: torch.Tensor, info: TensorInfo, plan: ConversionPlan, count: int, printoptions: Mapping[str, Any] = AUTO
) -> str:
    """Return the first `count` values along the last dimension as NumPy prints them."""
    tensor, info = what_it_stands_for(tensor, info)
    if info.kind.gives_several:
        return info.detail
    shape = info._array_shape
    places: Places = [range(min(size, 1)) for size in shape[:-1]]
    places += [range(min(size, count)) for size in shape[-1:]]
    try:
        array = gathered(tensor, info, plan, places)
    except NotReadError:
        return "(not read)"
    flat = array.reshape(-1)
    return ", ".join(texts_of(flat, printoptions) + ["…"] * (array.size < math.prod(shape)))


def texts_of(array: np.ndarray[Any, Any], own: Mapping[str, Any] = AUTO) -> list[str]:
    """Return NumPy's text of each element of a flat array, in four digits where NumPy would print eight."""
    shown = np.asarray(array.compressed() if isinstance(array, np.ma.MaskedArray) else array)
    with printing(own, array):
        now = np.get_printoptions()
        is_chosen = now["suppress"] or isinstance(own.get("precision"), int)
        text = np.array2string(
            shown, precision=now["precision"] if is_chosen else min(now["precision"], _COMPACT_PRECISION),
            separator=_SEPARATOR, threshold=shown.size + 1, max_line_width=_NO_LINE_BREAK,
        )  # fmt: skip
    texts = iter(text[1:-1].split(_SEPARATOR))
    return ["--" if is_hidden else next(texts).strip() for is_hidden in np.ma.getmaskarray(array)]


def _count_read(shape: tuple[int, ...], edgeitems: int | None, ellipsis: int = 0) -> int:
    return math.prod([min(size, 2 * edgeitems + ellipsis) if edgeitems else size for size in shape])


def gathered(tensor: torch.Tensor | StoredValues, info: TensorInfo, plan: ConversionPlan, places: Places) -> Any:
    """Return the array of the elements at `places`; raise NotReadError if they are not there."""
    return array_of_few(plan, *few_of(tensor, info, places))


def few_of(
    tensor: torch.Tensor | StoredValues, info: TensorInfo, places: Places
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the elements at `places`, and for a masked tensor the mask of the shown ones."""
    if type(tensor) is StoredValues:
        return tensor.few(places), None
    if info._is_pending:
        raise NotReadError("a collective is still making the values, and looking does not wait for it; t.wait() does")
    if info.inner is None:
        check_parts(tensor)
        return info.kind.few(tensor, places), None
    held: Any = info.kind.inner(tensor)
    few, is_shown = few_of(held, info.inner, places)
    if info.kind.is_masked:
        check_parts(tensor)
        mask: Any = info.kind.parts(tensor)[0]
        is_shown = form_of(mask).kind.few(mask, places).cpu()
    return few, is_shown


def array_of_few(plan: ConversionPlan, few: torch.Tensor, is_shown: torch.Tensor | None) -> Any:
    steps = tuple([step for step in plan.steps if step in _AFTER_GATHERING])
    array = array_of(replace(plan, steps=steps, writeable=True), few)
    return array if is_shown is None else masked_array(array, is_shown)


def _with_shape(text: str, printed: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Return the text of an array of corners with the shape of the whole, broken as NumPy breaks it."""
    options = np.get_printoptions()
    end = text.rindex("]") + 1
    body, extras = text[:end], text[end:].strip(", \n")
    if extras == ")":
        return body + ")"
    extras = extras.replace(f"shape={printed}", f"shape={shape}", 1)
    last_line = len(body) + 1 - (body.rfind("\n") + 1)
    breaks = options["legacy"] != "1.13" and last_line + len(extras) + 1 > options["linewidth"]
    return f"{body},{chr(10) + ' ' * len('array(') if breaks else ' '}{extras}"
