"""Choose the summary of an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.summary.card import TensorSummary, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.core.tensor.containers import is_container, is_seen
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like

if TYPE_CHECKING:
    from tensornp.core.summary.container import ArraySummary, ContainerSummary


@dataclass(frozen=True, slots=True)
class Unshown:
    type_name: str
    reason: str


Summary: TypeAlias = "TensorSummary | ArraySummary | ContainerSummary | Unshown"


def is_long(obj: Any) -> bool:
    """Return whether `obj` is a container that is shown as weights are."""
    if is_tensor_like(obj) or is_array(obj) or not (is_container(obj) and is_seen(obj)):
        return False
    from tensornp.core.summary import container

    return container.is_long(obj)


def summary_of(obj: Any, options: DisplayOptions, look: Look | None = None) -> Summary | None:
    """Return the summary of `obj`, or what is left if it fails; None if it has no card."""
    name = type(obj).__name__

    def summary() -> Summary | None:
        if is_tensor_like(obj):
            return summarize(obj, options, look)
        # Most kernels show a tensor first; its card should not import the others.
        if is_array(obj):
            from tensornp.core.summary.container import summarize_array

            return summarize_array(obj, options)
        if is_container(obj) and is_seen(obj):
            from tensornp.core.summary.container import summarize_container

            return summarize_container(obj, options)
        return None

    return first_that_works(
        f"the card of a {name}",
        summary,
        lambda reason: (
            TensorSummary(name, options.mode, inspect(obj), None, reason, None)
            if is_tensor_like(obj)
            else Unshown(name, reason)
        ),
        lambda reason: Unshown(name, reason),
    )
