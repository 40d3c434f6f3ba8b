"""Search the surroundings of a tensor for its card: aliases, saved tensors, modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import Alias, SeenAliases, find_aliases, stopped_text
from tensornp.core.memory.changes import Change
from tensornp.core.memory.saved import NEVER, saved_for
from tensornp.core.namespace.search import history_name
from tensornp.core.tensor.facts import TensorInfo


@dataclass(frozen=True, slots=True)
class Surroundings:
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
    stopped = "" if found.is_complete else stopped_text(found.num_names)
    stopped_graph = f"search for gradients stopped at {saved.stopped_at:,} operations" if saved.stopped_at else ""
    is_left_out = found.left_out or info.has_grad is None or saved.left_out
    return Surroundings(
        name=name,
        aliases=tuple(found),
        stopped="; ".join(filter(None, (stopped, stopped_graph))),
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
