"""Choose the summary of an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.summary.card import Look, summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.containers import is_container, is_seen
from tensornp.core.tensor.stand_ins import is_tensor_like


@dataclass(frozen=True, slots=True)
class Unshown:
    type_name: str
    reason: str


def is_long(obj: Any) -> bool:
    """Return whether `obj` is a container that is shown as weights are."""
    if is_tensor_like(obj) or is_array(obj) or not (is_container(obj) and is_seen(obj)):
        return False
    from tensornp.core.summary import container

    return container.is_long(obj)


def summary_of(obj: Any, options: DisplayOptions, look: Look | None = None) -> Any:
    """Return the summary of a tensor, an array or a container; None for other objects."""
    if is_tensor_like(obj):
        return summarize(obj, options, look)
    # Most kernels show a tensor first; its card should not import the others.
    from tensornp.core.summary import container

    if is_array(obj):
        return container.summarize_array(obj, options)
    return container.summarize_container(obj, options) if is_container(obj) and is_seen(obj) else None
