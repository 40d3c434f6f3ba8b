"""What a card says of a tensor's memory that the tensor itself does not know: one search gathers it all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.memory.aliases import Alias, find_aliases, stopped_text
from tensornp.core.memory.changes import Change
from tensornp.core.memory.former import Former
from tensornp.core.memory.saved import NEVER, saved_for
from tensornp.core.namespace.lookup import look_up
from tensornp.core.namespace.search import history_name
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.paths import expression_of, names_in
from tensornp.errors import BadRequestError

_HELD_BY_OPTIMIZER = re.compile(r"(.+\.param_groups\[\d+\])\['params'\]\[\d+\]")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Who else sees a tensor's memory, what autograd has saved of it, and what has changed.

    Attributes
    ----------
    name : str
        An expression by which a program reaches it, the one that the user typed where that is one; or empty.
    typed : str
        The expression that the user typed to see it; empty where that is not known.
    aliases : tuple of Alias
    grad_aliases : tuple of Alias
        The same for its ``.grad``.
    stopped : str
        Where the search ended before it was through: "search stopped at 12,345 names", or empty.
    left_out : str
        What was not looked at for another reason: gradients, while another thread runs; or empty.
    saved_for : tuple of str
        Operations that have saved its elements for backward.
    oldest_saver : int
        The number of the first of these operations.
    module_with_grads : str
        The name of the innermost module that holds it in which others have a ``.grad``, and it has none.
    change : Change or None
    is_buffer : bool
        Whether a module was found that has registered it as a buffer.
    is_fused : bool
        Whether an optimizer was found that updates it by a fused kernel.
    """

    name: str = ""
    typed: str = ""
    aliases: tuple[Alias, ...] = ()
    grad_aliases: tuple[Alias, ...] = ()
    stopped: str = ""
    left_out: str = ""
    saved_for: tuple[str, ...] = ()
    oldest_saver: int = NEVER
    module_with_grads: str = ""
    change: Change | None = None
    is_buffer: bool = False
    is_fused: bool = False

    @property
    def expression(self) -> str:
        """What a person would write to get it: its name, or what was typed; empty where neither is known."""
        return self.name or self.typed

    @property
    def is_spoiled(self) -> bool:
        """Whether a write that torch has not counted may have come after an operation has saved these elements.

        Of an operation since the last look, the order is not known: what a fused optimizer holds, and the running
        statistics of a batch norm, are written so as a matter of course, and saved then.
        """
        if self.change is None or self.change.cause != "uncounted" or not self.saved_for:
            return False
        is_running = self.is_buffer and all("BatchNorm" in name for name in self.saved_for)
        return self.oldest_saver < self.change.operation or not (self.is_fused or is_running)


NO_SURROUNDINGS = Surroundings()
Look = Callable[[torch.Tensor, TensorInfo], Surroundings]
"""What looks around a tensor."""


def find_surroundings(
    tensor: torch.Tensor,
    info: TensorInfo,
    namespace: Mapping[str, Any],
    max_seconds: float,
    *,
    former: Former,
    shown_as: str,
) -> Surroundings:
    """Return what one search tells; `former` knows what has shared, `shown_as` is what the user typed."""
    unguarded = Unguarded()
    with modes.outside_modes():
        grad = unguarded.grad_of(tensor) if info.has_grad else None
    objs = [(tensor, info), *([(grad, None)] if grad is not None else [])]
    (found, *rest), searched = find_aliases(objs, namespace, max_seconds, former, unguarded)
    name = _own_name(found, shown_as, namespace)
    module = None
    if info.is_leaf and info.requires_grad and info.is_parameter and info.has_grad is False:
        module = searched.trained_module_of(tensor)
    saved = saved_for(tensor, searched.tracked, max_seconds)
    stopped = [] if found.is_complete else [stopped_text(found.num_names)]
    stopped += [f"search for gradients stopped at {saved.stopped_at:,} operations"] if saved.stopped_at else []
    is_left_out = searched.left_out or info.has_grad is None or saved.left_out
    return Surroundings(
        name=name,
        aliases=tuple(found),
        grad_aliases=tuple(alias for alias in (rest[0] if rest else ()) if alias.kind != "grad"),
        stopped="; ".join(stopped),
        left_out=NOT_LOOKED_AT if is_left_out else "",
        saved_for=saved.names,
        oldest_saver=saved.oldest,
        is_buffer=any(alias.kind == "buffer" and alias.relation == "same object" for alias in found),
        is_fused=bool(saved.names) and any(_is_fused(alias, namespace) for alias in found),
        module_with_grads=expression_of(module) if module is not None else "",
    )


def _is_fused(alias: Alias, namespace: Mapping[str, Any]) -> bool:
    """Return whether it is the name of a parameter in a group of an optimizer that is fused."""
    held = _HELD_BY_OPTIMIZER.fullmatch(alias.name)
    if held is None or alias.relation != "same object":
        return False
    try:
        return look_up(f"{held[1]}['fused']", namespace) is True
    except BadRequestError:
        return False


def _own_name(found: list[Alias], shown_as: str, namespace: Mapping[str, Any]) -> str:
    """Return the name by which the tensor is shown, or else the one that is most likely its own."""
    names = [alias.name for alias in found if alias.relation == "same object"]
    own = [name for name in names if (read := names_in(name)) is not None and read <= namespace.keys()]
    if shown_as in own:
        return shown_as
    typed = [name for name in own if not name.startswith(("_", f"{history_name(namespace)}["))]
    return next((name for name in typed if name.isidentifier()), next(iter(typed), ""))
