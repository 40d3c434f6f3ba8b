"""Gather the content of a tensor's card, once for all renderers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from tensornp.core.convert.budget import Budget
from tensornp.core.convert.plan import MODES, ConversionPlan, decide
from tensornp.core.convert.to_numpy import decide_shard, plan_from
from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import Alias, SeenAliases, find_aliases
from tensornp.core.memory.changes import Change
from tensornp.core.memory.saved import NEVER, saved_for
from tensornp.core.namespace.search import history_name
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import stood_for
from tensornp.core.values.shown.preview import MAX_ELEMENTS, Preview, first_values, preview
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import HistogramChoice, TensorStats
from tensornp.errors import TensornpError, TooLargeError

MAX_TENSORS = 200
"""Each costs some 0.4 ms, however small."""


class StatsBudget:
    """Reads statistics until so many bytes or tensors were read."""

    def __init__(self, max_nbytes: int) -> None:
        self._left, self._num_left = max_nbytes, MAX_TENSORS

    @property
    def has_room(self) -> bool:
        """Whether another tensor may be read."""
        return self._left > 0 and self._num_left > 0

    def stats(self, obj: Any, info: TensorInfo | None, *, histogram: HistogramChoice = "auto") -> TensorStats | None:
        """Return the statistics of a tensor, or of an array if `info` is None; None beyond the budget."""
        try:
            nbytes = obj.nbytes if info is None else nbytes_unasked(info)
            if not 0 < nbytes <= self._left or not self._num_left:
                return None
            self._left -= nbytes
            self._num_left -= 1
            return scan(obj, histogram=histogram, info=info)
        except Exception:
            # A display never fails: it is complete without them.
            return None

    def nonfinite(self, obj: Any, info: TensorInfo | None) -> TensorStats | None:
        """Return statistics without a histogram of a tensor or array of floats."""
        is_float = obj.dtype.kind in "fc" if info is None else info.dtype.is_floating_point or info.dtype.is_complex
        return self.stats(obj, info, histogram=None) if is_float else None


class Surroundings(NamedTuple):
    """The aliases of a tensor, the operations that have saved it, and its last change."""

    name: str = ""
    typed: str = ""
    aliases: tuple[Alias, ...] = ()
    stopped: str = ""
    left_out: str = ""
    saved_for: tuple[str, ...] = ()
    oldest_saver: int = NEVER
    change: Change | None = None
    is_buffer: bool = False

    @property
    def expression(self) -> str:
        return self.name or self.typed

    @property
    def is_spoiled(self) -> bool:
        """Whether torch has missed a write that follows an operation which has saved these elements."""
        change = self.change
        return change is not None and change.cause == "uncounted" and self.oldest_saver < change.operation


NO_SURROUNDINGS = Surroundings()
Look = Callable[[torch.Tensor, TensorInfo], Surroundings]


LINE_VALUES = 6
MAX_WHOLE_IN_LINE = 10
"""Elements up to which a line shows all values instead of statistics."""
MAX_ROW_CHARACTERS = 50


class TensorSummary(NamedTuple):
    """One tensor as a card shows it; `refusal` says why there is no array or no value."""

    type_name: str
    mode: str
    info: TensorInfo | None
    plan: ConversionPlan | None
    refusal: str
    preview: Preview | None
    surroundings: Surroundings = NO_SURROUNDINGS
    too_large: int = 0
    style: str = "card"
    stats: TensorStats | None = None

    @property
    def has_values_in_row(self) -> bool:
        """Whether values stand in the row of badges: all of few, or the first if there are no statistics."""
        if self.style == "line":
            return self.stats is None or self.info is None or self.info.numel <= MAX_WHOLE_IN_LINE
        return self.style == "tiny"


@modes.outside_modes
def summarize(tensor: torch.Tensor, options: DisplayOptions, look: Look | None = None) -> TensorSummary:
    """Return the summary of `tensor`; never raises and changes nothing. `look` searches its surroundings."""

    def show(tensor: torch.Tensor, info: TensorInfo, plan: ConversionPlan) -> Preview:
        if options.style == "line":
            number = max(info.numel, 1) if info.numel <= MAX_WHOLE_IN_LINE else LINE_VALUES
            return Preview(first_values(tensor, info, plan, number, options.printoptions).replace("\n", ""))
        return preview(tensor, info, plan, max_elements=MAX_ELEMENTS, printoptions=options.printoptions)

    summary = _guarded(tensor, options, show, look)
    # A tensor with an array has statistics, even if it could not be printed.
    if summary.info is None or (summary.plan is None and summary.preview is None):
        return summary
    style = options.style
    if style == "auto":
        text = summary.preview.text if summary.preview is not None else "\n"
        style = "tiny" if "\n" not in text and len(text) <= MAX_ROW_CHARACTERS else "card"
    return summary._replace(style=style, stats=StatsBudget(options.stats_nbytes).stats(tensor, summary.info))


def looked_at(tensor: torch.Tensor, info: TensorInfo, look: Look | None) -> tuple[TensorInfo, Surroundings]:
    if look is None:
        return info, NO_SURROUNDINGS
    try:
        if is_tensor(tensor) or info.inner is None:
            around = look(tensor, info)
        else:
            # The name is that of the tensor for which it stands.
            around = look(stood_for(tensor), info.inner)._replace(name="")
    except Exception as error:
        around = NO_SURROUNDINGS._replace(left_out=f"the search for other names failed ({error_text(error)})")
    is_buffer = around.is_buffer or info.is_buffer
    if around.saved_for or is_buffer is not info.is_buffer:
        info = replace(info, _saved_for=around.saved_for, is_buffer=is_buffer)
    return info, around


@modes.outside_modes
def summarize_line(tensor: torch.Tensor, options: DisplayOptions, num_values: int = LINE_VALUES) -> TensorSummary:
    def show(tensor: torch.Tensor, info: TensorInfo, plan: ConversionPlan) -> Preview:
        return Preview(first_values(tensor, info, plan, num_values, options.printoptions))

    found = _guarded(tensor, options, show)
    seen = found.preview
    if seen is None or found.info is None or found.info.shard is None or not found.info._has_part:
        return found
    # A line has no other place for it.
    return found._replace(preview=Preview(f"{seen.text} ({found.info.shard.scope})"))


Show = Callable[[torch.Tensor, TensorInfo, ConversionPlan], Preview]


def _guarded(tensor: torch.Tensor, options: DisplayOptions, show: Show, look: Look | None = None) -> TensorSummary:
    name, mode, info, plan, around = type(tensor).__name__, options.mode, None, None, NO_SURROUNDINGS
    try:
        info = inspect(tensor)
        info, around = looked_at(tensor, info, look)
        found = _attempt(info, mode, options)
        # Where sharing is impossible, the card shows a copy.
        mode, plan = (mode, found) if isinstance(found, ConversionPlan) else ("copy", plan_mode(info, "copy", options))
        return TensorSummary(name, mode, info, plan, "", _shown(tensor, info, plan, show), around)
    except TensornpError as error:
        shown, too_large = _shown_despite(tensor, info, show, error), getattr(error, "nbytes", 0)
        return TensorSummary(name, mode, info, None, str(error), shown, around, too_large)
    except Exception as error:
        return TensorSummary(name, mode, info, plan, error_text(error), None, around)


def _shown(tensor: Any, info: TensorInfo, plan: ConversionPlan, show: Show) -> Preview:
    if info.shard is None or info.inner is None or not info._has_part:
        return show(tensor, info, plan)
    held = info.kind.inner(tensor)
    seen = show(held, info.inner, plan)
    return seen._replace(note="; ".join(filter(None, (info.shard.scope, str(info.shard), seen.note))))


def _shown_despite(tensor: Any, info: TensorInfo | None, show: Show, refusal: TensornpError) -> Preview | None:
    """Return the outer elements of an array that is too large, or the values inside torch.func; else None."""
    try:
        if info is not None and isinstance(refusal, TooLargeError):
            plan = decide_shard(info, "local" if info._has_part else None)
            return _shown(tensor, info, plan, show)._replace(note=str(refusal))
        inner, is_batched = torch_private.inside_transforms(tensor)
        if inner is tensor:
            return None
        info = inspect(inner)
        more = "; shown: the values of all calls of vmap" if is_batched else ""
        return show(inner, info, decide(info))._replace(note=f"{refusal}{more}")
    except Exception:
        return None


def plan_mode(info: TensorInfo, mode: str, options: DisplayOptions) -> ConversionPlan:
    return plan_from(info, Budget(options.max_nbytes or None), shard="local" if info._has_part else None, **MODES[mode])


def plan_modes(info: TensorInfo, options: DisplayOptions) -> dict[str, ConversionPlan | str]:
    return {mode: _attempt(info, mode, options) for mode in MODES}


def _attempt(info: TensorInfo, mode: str, options: DisplayOptions) -> ConversionPlan | str:
    """Return the plan for `mode`, or why there is none; a view must not copy."""
    try:
        plan = plan_mode(info, mode, options)
    except TensornpError as error:
        return str(error)
    if mode == "view" and plan.nbytes_copied:
        return f"a live view is impossible ({plan.reason})"
    return plan


def find_surroundings(
    tensor: torch.Tensor,
    info: TensorInfo,
    namespace: Mapping[str, Any],
    max_seconds: float,
    *,
    seen: SeenAliases,
    shown_as: str,
) -> Surroundings:
    """Search once; `seen` knows former aliases, `shown_as` is the expression that the user typed."""
    found, searched = find_aliases(tensor, namespace, max_seconds, seen)
    name = _own_name(found, shown_as, namespace)
    saved = saved_for(tensor, searched.tracked, max_seconds)
    stopped_graph = f"search for gradients stopped at {saved.stopped_at:,} operations" if saved.stopped_at else ""
    is_left_out = found.left_out or info.has_grad is None or saved.left_out
    return Surroundings(
        name=name,
        aliases=tuple(found),
        stopped="; ".join(filter(None, (found.stopped, stopped_graph))),
        left_out=NOT_LOOKED_AT if is_left_out else "",
        saved_for=saved.names,
        oldest_saver=saved.oldest,
        is_buffer=any([alias.kind == "buffer" and alias.relation == "same object" for alias in found]),
    )


def _own_name(found: list[Alias], shown_as: str, namespace: Mapping[str, Any]) -> str:
    # A key that is no plain value has its class in angle brackets, which is no expression.
    own = [alias.name for alias in found if alias.relation == "same object" and "<" not in alias.name]
    if shown_as in own:
        return shown_as
    hidden = "_", f"{history_name(namespace)}["
    typed = [name for name in own if not name.startswith(hidden)]
    return next(filter(str.isidentifier, typed), next(iter(typed), ""))
