"""Everything that a card says of a tensor or of a container, gathered once for all renderers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from tensornp.core.convert.budget import within_budget
from tensornp.core.convert.page_protection import with_page_protection
from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.view_share_copy import MODES, mode_arguments
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_name, error_text, is_tensor
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import NO_SURROUNDINGS, Look, Surroundings
from tensornp.core.tensor.containers import LEAVES, MAX_DEPTH, container_of, is_container, leaves
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect, span_of
from tensornp.core.tensor.paths import Path, expression_of, first_step, is_plain_value, steps_of
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of, stood_for
from tensornp.core.values.preview import Preview, first_values, preview
from tensornp.errors import TensornpError, TooLargeError

MAX_LEAVES = 20_000
"""Leaves of a container that are counted; past that, the count is said to be a lower bound."""
FIRST_VALUES = 3
"""Values of each tensor that a row shows."""


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor as a card shows it: what it is, what it would become, and what NumPy would print.

    `info` is None only where even the metadata could not be read; `plan` is None where there is no array, and `refusal`
    then says why. `preview` is None where no value is shown, and `refusal` says why too. `surroundings` is what was
    found around it, where someone looked.
    """

    type_name: str
    mode: str
    info: TensorInfo | None
    plan: ConversionPlan | None
    refusal: str
    preview: Preview | None
    surroundings: Surroundings = NO_SURROUNDINGS


@dataclass(frozen=True, slots=True)
class Row:
    """One leaf of a container: a tensor's summary and first values, or the short text of anything else."""

    name: str
    tensor: TensorSummary | None
    text: str


@dataclass(frozen=True, slots=True)
class ContainerSummary:
    """A container of tensors as a table shows it.

    `num_left_out` leaves are left out after the first `num_first`. Where it is not `is_complete`, there may be more of
    them than were counted; where it is not `is_measured`, `nbytes` is without those that were not asked.
    """

    type_name: str
    length: int
    rows: tuple[Row, ...]
    num_first: int
    num_left_out: int
    num_tensors: int
    nbytes: int
    is_complete: bool
    is_measured: bool = True


@modes.unnoticed
def summarize(tensor: torch.Tensor, options: DisplayOptions, look: Look | None = None) -> TensorSummary:
    """Return the summary of `tensor`; never raises, reads only the printed elements and changes nothing.

    `look` looks around it, which the tensor itself cannot.
    """

    def show(info: TensorInfo, plan: ConversionPlan) -> Preview:
        return preview(tensor, info, plan, max_elements=options.max_elements)

    return _guarded(tensor, options, show, look)


def looked_at(tensor: torch.Tensor, info: TensorInfo, look: Look | None) -> tuple[TensorInfo, Surroundings]:
    """Return `info` with what only the surroundings tell, and these; looking never fails."""
    try:
        seen = (tensor, info) if is_tensor(tensor) or info.inner is None else (stood_for(tensor), info.inner)
        around = look(*seen) if look is not None else NO_SURROUNDINGS
    except Exception as error:
        around = replace(NO_SURROUNDINGS, left_out=f"the search for other names failed ({error_text(error)})")
    is_buffer = around.is_buffer or info.is_buffer
    if around.saved_for or around.untold or is_buffer is not info.is_buffer:
        info = replace(info, saved_for=around.saved_for, untold=around.untold, is_buffer=is_buffer)
    return info, around


@modes.unnoticed
def summarize_metadata(tensor: torch.Tensor) -> TensorSummary:
    """Return what is known of `tensor` without any value or plan; never raises."""
    try:
        return TensorSummary(class_name(type(tensor)), "view", inspect(tensor), None, "", None)
    except Exception as error:
        return TensorSummary(class_name(type(tensor)), "view", None, None, error_text(error), None)


def _guarded(
    tensor: torch.Tensor,
    options: DisplayOptions,
    show: Callable[[TensorInfo, ConversionPlan], Preview],
    look: Look | None = None,
) -> TensorSummary:
    """Return a summary whatever happens: looking never fails, so every exception ends as the card's sentence."""
    name, mode, info, plan, around = class_name(type(tensor)), options.mode, None, None, NO_SURROUNDINGS
    try:
        info = inspect(tensor)
        info, around = looked_at(tensor, info, look)
        mode, plan = _planned(info, options)
        return TensorSummary(name, mode, info, plan, "", show(info, plan), around)
    except TooLargeError as error:
        return TensorSummary(name, mode, info, None, str(error), _shown_all_the_same(info, show, str(error)), around)
    except TensornpError as error:
        return TensorSummary(name, mode, info, None, str(error), None, around)
    except Exception as error:
        return TensorSummary(name, mode, info, plan, error_text(error), None, around)


def _shown_all_the_same(
    info: TensorInfo | None, show: Callable[[TensorInfo, ConversionPlan], Preview], refusal: str
) -> Preview | None:
    """Return the outer elements of an array that is too large to be made: they take no more memory than any others."""
    try:
        return replace(show(info, decide(info)), note=refusal) if info is not None else None
    except Exception:
        return None


def _planned(info: TensorInfo, options: DisplayOptions) -> tuple[str, ConversionPlan]:
    """Return the plan for the mode of `options`, or for copy where sharing is impossible, with its mode."""
    plan = _attempt(info, options.mode, options)
    if isinstance(plan, ConversionPlan):
        return options.mode, plan
    return "copy", plan_mode(info, "copy", options)


def plan_mode(info: TensorInfo, mode: str, options: DisplayOptions) -> ConversionPlan:
    """Return the plan for one of the three modes; raises as `to_numpy` does."""
    arguments = mode_arguments(mode)
    plan = decide(with_page_protection(info) if arguments["writeable"] else info, **arguments)
    return within_budget(plan, options.max_nbytes or None)


def plan_modes(info: TensorInfo, options: DisplayOptions) -> dict[str, ConversionPlan | str]:
    """Return for each mode its plan, or the sentence that says why it cannot be."""
    return {mode: _attempt(info, mode, options) for mode in MODES}


def _attempt(info: TensorInfo, mode: str, options: DisplayOptions) -> ConversionPlan | str:
    """Return the plan for `mode`, or why there is none: a view that would be a copy is offered as a copy alone."""
    try:
        plan = plan_mode(info, mode, options)
    except TensornpError as error:
        return str(error)
    if mode == "view" and plan.nbytes_copied:
        return f"a live view is impossible ({plan.reason})"
    return plan


@modes.unnoticed
def summarize_container(container: Any, options: DisplayOptions) -> ContainerSummary:
    """Return the summary of a container: its first and last leaves, and totals over all of them."""
    found, is_complete = _leaves(container)
    found = found[:MAX_LEAVES]
    num_last = options.max_rows // 4 if len(found) > options.max_rows else 0
    first = found[: options.max_rows - num_last]
    shown = first + found[len(found) - num_last :]
    tensors = [leaf for _, leaf in found if is_tensor_like(leaf)]
    rows = tuple(_row(expression_of(path), leaf, options) for path, leaf in shown)
    # What only stands for a tensor may compute it: no more of them are asked than have rows.
    asked = {id(leaf): row.tensor.info for (_, leaf), row in zip(shown, rows, strict=True) if row.tensor is not None}
    stand_ins = {id(leaf): asked.get(id(leaf)) for leaf in tensors if stand_in_of(leaf) is not None}
    known = [tensor for tensor in tensors if id(tensor) not in stand_ins]
    return ContainerSummary(
        type_name=class_name(type(container)),
        length=_length(container, found),
        rows=rows,
        num_first=len(first),
        num_left_out=len(found) - len(shown),
        num_tensors=len(tensors),
        nbytes=_nbytes(known) + sum(info.nbytes for info in stand_ins.values() if info is not None),
        is_complete=is_complete,
        is_measured=None not in stand_ins.values(),
    )


def _leaves(container: Any) -> tuple[list[tuple[Path | None, Any]], bool]:
    """Return the leaves up to the first that cannot be reached, and whether these are all."""
    found: list[tuple[Path | None, Any]] = []
    try:
        found.extend(islice(leaves(container), MAX_LEAVES + 1))
    except Exception:
        return found[:MAX_LEAVES], False
    is_cut = any(path is not None and _is_cut(path, leaf) for path, leaf in found)
    return found, len(found) <= MAX_LEAVES and not is_cut


def _is_cut(path: Path, leaf: Any) -> bool:
    """Return whether a leaf is a container, into which nobody looked, since it lies too deep."""
    return id(type(leaf)) not in LEAVES and len(list(steps_of(path))) >= MAX_DEPTH and is_container(leaf)


def _length(container: Any, found: list[tuple[Path | None, Any]]) -> int:
    """Return how many items a container has; of a class of its own, `len` may tell something else."""
    if container_of(type(container)) is not None:
        try:
            return len(container)
        except Exception:
            # A dataclass has none, and that of a subclass may raise.
            pass
    # Leaves below one item share its step.
    return len({id(first_step(path)) for path, _ in found if path is not None})


def _nbytes(tensors: list[torch.Tensor]) -> int:
    """Return the bytes of all tensors, those that lie at the same place (tied weights) counted once."""
    places: dict[object, int] = {}
    for tensor in tensors:
        try:
            place, nbytes = span_of(tensor)
        except Exception:
            # Its row says what is wrong; it adds no bytes that are known.
            continue
        places[place or id(tensor)] = nbytes
    return sum(places.values())


def _row(name: str, leaf: Any, options: DisplayOptions) -> Row:
    if not is_tensor_like(leaf):
        return Row(name, None, _short_text(leaf))
    summary = _guarded(leaf, options, lambda info, plan: Preview(first_values(leaf, info, plan, FIRST_VALUES)))
    return Row(name, summary, summary.preview.text if summary.preview else "")


def _short_text(leaf: Any) -> str:
    """Return a few words for what is not a tensor; only for plain types is its own repr called."""
    if is_plain_value(leaf):
        if type(leaf) is int and leaf.bit_length() > 1000:
            return f"(int of {leaf.bit_length():,} bits)"
        text = repr(leaf[:40] if isinstance(leaf, (str, bytes)) else leaf)
        return text if len(text) <= 40 else text[:39] + "…"
    return f"({class_name(type(leaf))})"
