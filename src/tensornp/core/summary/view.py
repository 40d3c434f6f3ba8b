"""What is summed up as what: a tensor for a card, a module or a container for a table; records stand for themselves."""

from __future__ import annotations

from typing import Any

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.memory.aliases import Alias, Aliases
from tensornp.core.summary.card import TensorSummary, summarize
from tensornp.core.summary.container import ContainerSummary, summarize_container
from tensornp.core.summary.generator import leaves_of, summarize_generator
from tensornp.core.summary.module import ModuleSummary, is_module, summarize_module
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
    """Return whether a function of ours has returned `obj` to be read; a list of aliases may have become another."""
    if type(obj) is Aliases:
        return all(type(alias) is Alias for alias in obj)
    return type(obj) in (ConversionPlan, TensorInfo)


def summary_of(obj: Any, options: DisplayOptions, look: Look | None = None) -> Summary | None:
    """Return the summary of `obj`; None for what has no card. `look` looks around a tensor."""
    if is_tensor_like(obj):
        return summarize(obj, options, look)
    if is_record(obj):
        return obj  # type: ignore[no-any-return]
    if is_module(obj):
        return summarize_module(obj, options)
    if is_container(obj):
        return summarize_container(obj, options)
    leaves = leaves_of(obj)
    return summarize_generator(leaves, options) if leaves else None
