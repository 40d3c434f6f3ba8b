"""The text that NumPy would print of the whole array, made from the printed elements alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tensornp.core import torch_private
from tensornp.core.convert import execute
from tensornp.core.info import TensorInfo
from tensornp.core.plan import ConversionPlan
from tensornp.core.steps import Step


@dataclass(frozen=True, slots=True)
class Preview:
    """What NumPy prints of an array.

    Attributes
    ----------
    text : str
        Equal to ``repr`` of the converted array, unless `note` says otherwise.
    note : str
        Why fewer elements are shown than NumPy would print; empty otherwise.
    """

    text: str
    note: str = ""


_FIRST_PRECISION = 4
"""Digits of the first values in a table, where NumPy would print eight."""


def preview(tensor: torch.Tensor, info: TensorInfo, plan: ConversionPlan, *, max_elements: int) -> Preview:
    """Return what NumPy prints of the array that `plan` would give, under the user's print options.

    Only the printed elements are read, gathered on the tensor's own device into new memory, so that the tensor's
    storage is neither copied as a whole nor locked. At most about `max_elements` are printed, whatever the options ask.
    """
    options = np.get_printoptions()
    asked = options["edgeitems"] if info.numel > options["threshold"] else None
    edgeitems = _affordable(info.shape, asked, max_elements)
    note = ""
    if edgeitems != asked:
        note = f"print options ask for more than {max_elements:,} elements; only the outer ones are shown"
    # With 0 edge items NumPy still measures all elements to align the one that it prints.
    if not edgeitems or all(size <= 2 * edgeitems for size in info.shape):
        return Preview(repr(_gather(tensor, plan, None)), note)
    return Preview(_summarized(_gather(tensor, plan, edgeitems), info.shape, edgeitems, options), note)


def first_values(tensor: torch.Tensor, plan: ConversionPlan, count: int) -> str:
    """Return the first `count` values along the last dimension as NumPy prints them, and an ellipsis if there are more.

    Reads these elements only, as `preview` does.
    """
    with torch_private.undisturbed():
        few = tensor.detach()
        for _ in range(few.dim() - 1):
            few = few[:1].flatten(0, 1) if few.dim() > 1 else few
        few = few[:count] if few.dim() else few
        is_cut = few.numel() < tensor.numel()
    array = _gather(few, plan, None)
    if not array.ndim:
        return str(array)
    precision = min(np.get_printoptions()["precision"], _FIRST_PRECISION)
    text = np.array2string(array, precision=precision, separator=",", threshold=count + 1, max_line_width=10_000)
    values = [value.strip() for value in text[1:-1].split(",")]
    return ", ".join(values + ["…"] * is_cut)


def _affordable(shape: tuple[int, ...], edgeitems: int | None, max_elements: int) -> int | None:
    """Return `edgeitems`, or as many that no more than `max_elements` are read, at least 1; None and 0 read all."""
    if _count_read(shape, edgeitems) <= max_elements:
        return edgeitems
    edgeitems = min(edgeitems or max_elements, max_elements)
    while edgeitems > 1 and _count_read(shape, edgeitems) > max_elements:
        edgeitems //= 2
    return max(1, edgeitems)


def _count_read(shape: tuple[int, ...], edgeitems: int | None) -> int:
    return math.prod(min(size, 2 * edgeitems) if edgeitems else size for size in shape)


def _gather(tensor: torch.Tensor, plan: ConversionPlan, edgeitems: int | None) -> np.ndarray[Any, Any]:
    """Return the array of the corners, or of all elements where `edgeitems` is None.

    The lazy bits come off first and go back on after: torch would otherwise resolve the whole tensor to index it.
    """
    with torch_private.undisturbed():
        raw = tensor.detach()
        if type(raw) is not torch.Tensor:
            raw = raw.as_subclass(torch.Tensor)
        conj, neg = raw.is_conj(), raw.is_neg()
        raw = torch_private.flip_neg_bit(raw) if neg else raw
        raw = raw.conj() if conj else raw
        few = raw.clone() if edgeitems is None else _corners(raw, edgeitems)
        few = few.conj() if conj else few
        few = torch_private.flip_neg_bit(few) if neg else few
        steps = tuple(step for step in plan.steps if step is not Step.COPY)
        return execute(replace(plan, steps=steps, writeable=True), few)


def _corners(values: torch.Tensor, edgeitems: int) -> torch.Tensor:
    """Return the outer `edgeitems` of each longer dimension, with one repeated element between for the ellipsis."""
    places: list[torch.Tensor] = []
    for dim, size in enumerate(values.shape):
        if size > 2 * edgeitems:
            chosen = [*range(edgeitems), 0, *range(size - edgeitems, size)]
        else:
            chosen = list(range(size))
        shape = [-1] + [1] * (values.dim() - dim - 1)
        places.append(torch.tensor(chosen, dtype=torch.int64, device=values.device).view(shape))
    return values[tuple(places)]


def _summarized(corners: np.ndarray[Any, Any], shape: tuple[int, ...], edgeitems: int, options: Any) -> str:
    """Return `repr` of the array of `shape` whose outer elements are `corners`.

    NumPy prints the corners itself; only the shape that it states after them, and with it the place of the line break
    before, belongs to the whole. NumPy breaks where the last line would pass the line width (`array_repr`, NumPy 2.4).
    """
    # A formatter is dropped unless it is passed on; so is a repr of the user's own, which must not see mere corners.
    with np.printoptions(threshold=0, edgeitems=edgeitems, formatter=options["formatter"]):
        text = repr(corners)
    end = text.rindex("]") + 1
    body, extras = text[:end], text[end:].strip(", \n")
    if extras == ")":
        return body + ")"
    extras = extras.replace(f"shape={corners.shape}", f"shape={shape}", 1)
    last_line = len(body) + 1 - (body.rfind("\n") + 1)
    breaks = options["legacy"] != "1.13" and last_line + len(extras) + 1 > options["linewidth"]
    return f"{body},{chr(10) + ' ' * len('array(') if breaks else ' '}{extras}"
