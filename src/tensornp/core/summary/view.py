"""What is summed up as what: a tensor for a card, a module or a container for a table; records stand for themselves."""

from __future__ import annotations

from typing import Any

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.memory.aliases import Aliases
from tensornp.core.summary.card import TensorSummary, summarize
from tensornp.core.summary.container import ContainerSummary, summarize_container
from tensornp.core.summary.module import (
    ModuleSummary,
    is_generator,
    is_module,
    summarize_generator,
    summarize_module,
)
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.stand_ins import is_tensor_like

Record = ConversionPlan | TensorInfo | Aliases
"""What `plan`, `inspect` and `aliases` return."""
Summary = TensorSummary | ModuleSummary | ContainerSummary | Record
"""All that is shown of one object."""


def is_record(obj: Any) -> bool:
    """Return whether a function of tensornp has returned `obj` to be read."""
    return type(obj) in (ConversionPlan, TensorInfo, Aliases)


def summary_of(obj: Any, options: DisplayOptions, look: Look | None = None) -> Summary | None:
    """Return the summary of `obj`; None for what has no card. `look` looks around a tensor."""
    if is_tensor_like(obj):
        return summarize(obj, options, look)
    if is_record(obj):
        return obj  # type: ignore[no-any-return]
    if is_module(obj):
        return summarize_module(obj, options)
    if is_generator(obj):
        return summarize_generator(obj, options)
    return summarize_container(obj, options) if is_container(obj) else None
