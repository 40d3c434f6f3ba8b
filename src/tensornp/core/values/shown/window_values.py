"""Read a window of a tensor: its numbers in few digits and exactly, and their shades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.receipt import no_data_text
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor import kinds
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.tensor.steps import Step
from tensornp.core.values.shown.preview import COMPACT_RANGE, array_of_few, few_of, texts_of, what_it_stands_for
from tensornp.core.values.shown.window import Window
from tensornp.core.values.stored import StoredValues, values_of_array
from tensornp.errors import BadRequestError, NoDataError

FULL = 100
"""The shade of the largest magnitude; negative numbers have negative shades."""
NAN, POSITIVE_INF, NEGATIVE_INF = 127, 126, -126
"""The shades of elements without a place on the scale."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The tensor of a window, or the local part of a distributed one; `access` is its expression from ``t``."""

    tensor: torch.Tensor | StoredValues
    info: TensorInfo
    plan: ConversionPlan
    access: str
    shard: ShardFacts | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.info._array_shape

    def code(self, name: str) -> str:
        if self.shape != self.info.shape:
            return ""
        return name + self.access[1:] + self.info.kind.indexed_by


@dataclass(frozen=True, slots=True)
class Seen:
    """The elements of a window: short texts, exact ones, and shades from -100 to 100, or NAN and so on."""

    texts: list[str]
    exact: list[str]
    shades: list[int]


@outside_modes
def subject_of(seen: torch.Tensor | StoredValues | np.ndarray[Any, Any]) -> Subject:
    """Return the tensor that a window shows; BadRequestError for a nested one."""
    tensor: Any = values_of_array(seen) if is_array(seen) else seen
    if type(tensor) is StoredValues:
        return Subject(tensor, tensor.info, decide(tensor.info), "t")
    info = inspect(tensor)
    access = info.kind.access if info.kind.step is Step.STAND_IN else "t"
    tensor, info = what_it_stands_for(tensor, info)
    if info.kind.is_masked:
        raise BadRequestError(info.kind.refusal)
    if info.kind.gives_several:
        decide(info)
        raise BadRequestError("a nested tensor is several tensors; look at one of t.unbind()")
    shard = None
    while info.kind is kinds.LOCAL and info.inner is not None and not info._is_pending:
        if info.data_state == "remote":
            shard = info.shard
            if shard is not None and shard.pending:
                raise NoDataError(no_data_text(info))
        held: Any = info.kind.inner(tensor)
        tensor, info, access = held, info.inner, access + info.kind.access[1:]
    if shard is not None and (shard.offsets is None or shard.shape != info._array_shape):
        # The place of the elements in the whole is not known.
        shard = None
    return Subject(tensor, info, decide(info), access, shard)


@outside_modes
def read_window(subject: Subject, window: Window) -> Seen:
    """Return the elements of `subject` in `window`; nothing else is read."""
    if not window.numel:
        return Seen([], [], [])
    array = elements_in(subject, window)
    return Seen(_short_texts(array), list(map(str, array)), shades_of(array))


def _short_texts(array: Any) -> list[str]:
    """Return numbers with the same decimals; NumPy would write all with an exponent if one is tiny."""
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    largest = float(finite.max(initial=0))
    if not COMPACT_RANGE[0] <= largest < COMPACT_RANGE[1]:
        return [text.removesuffix(".") for text in texts_of(array)]
    is_whole = bool((finite == np.rint(finite)).all())
    decimals = 0 if is_whole else max(3 - math.floor(math.log10(largest)), 0)
    least = 0.5 * 10.0**-decimals
    return [f"{value:.1e}" if 0 < abs(value) < least else f"{value:.{decimals}f}" for value in array.tolist()]


@outside_modes
def elements_in(subject: Subject, window: Window) -> Any:
    few, _ = few_of(subject.tensor, subject.info, window.places)
    few = few.cpu() if Step.TO_HOST in subject.plan.steps else few
    if window.is_transposed:
        few = few.view(window.num_columns, window.num_rows).t()
    return array_of_few(subject.plan, quietly(few.reshape, -1), None)


def shades_of(values: Any) -> list[int]:
    """Return the place of each element on a scale symmetric about 0."""
    with np.errstate(all="ignore"):
        is_nan, is_inf = np.isnan(values), np.isinf(values)
        size = np.abs(values) if values.dtype.kind == "c" else values
        size = size.astype(np.result_type(size.dtype, np.float64))
        is_on_scale = ~(is_nan | is_inf | np.isinf(size))
        placed = size[is_on_scale]
        limit = float(np.max(np.abs(placed), initial=0))
        # In two steps, since the reciprocal of a tiny limit is no float.
        shades = np.where(is_on_scale & (limit > 0), np.rint(size / (limit or 1.0) * FULL), 0)
    conditions = [is_nan, is_inf & (np.real(values) == -np.inf), is_inf, np.isinf(size)]
    shades = np.select(conditions, [NAN, NEGATIVE_INF, POSITIVE_INF, FULL], shades)
    return [int(shade) for shade in shades]
