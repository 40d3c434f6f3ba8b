"""What comes back for values and parameters: nodes of the graph tell, and nothing is set on a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from tensornp.core.lowlevel.private_names import find
from tensornp.passes.remembered import Call, Module
from tensornp.passes.seen_tensors import Seen, storage_key

_graph_task = find("_C._current_graph_task_id")
_Told = Callable[[Seen, int, Any], None]


class _Parameter:
    """A parameter whose gradient is awaited."""

    __slots__ = ("handle", "key", "module", "seen", "task")

    def __init__(self, seen: Seen, module: Module, key: int | None) -> None:
        self.seen, self.module, self.key = seen, module, key
        self.handle: Any = None
        self.task: int | None = None


class AwaitedGradients:
    """Prehooks of nodes: `told` gets the state of a tensor, its place among the gradients that have come, and these."""

    def __init__(self, told: _Told) -> None:
        self.parameters: dict[tuple[int, str], _Parameter] = {}
        self._told = told
        self._handles: list[Any] = []

    def of_value(self, tensor: torch.Tensor, seen: Seen) -> None:
        """Have the node that made `tensor` tell what comes back for it, once."""
        try:
            node, number = tensor.grad_fn, tensor.output_nr
        except Exception:
            # Torch makes the node of a view when it is asked for, and may refuse; so may a class.
            return
        if node is None or seen.is_awaited:
            return
        seen.is_awaited = True
        self._handles.append(node.register_prehook(functools.partial(self._told, seen, number)))

    def of_parameter(self, tensor: torch.Tensor, name: str, seen: Seen, call: Call) -> None:
        """Have the node that accumulates the gradient of a parameter tell what comes.

        The call keeps it until it has used the parameter, from when on the graph does; kept for longer, it would keep
        the parameter too, and the shape that this had.
        """
        place, key = (call.module.root, f"{call.module.name}.{name}".lstrip(".")), storage_key(tensor)
        known = self.parameters.get(place)
        if known is None or known.key != key:
            known = self.parameters[place] = _Parameter(seen, call.module, key)
        try:
            edge = get_gradient_edge(tensor)
            call.edges.append(edge)
            handle = edge.node.register_prehook(functools.partial(self._came_back, known, edge.output_nr))
        except Exception:
            # Of an uninitialized one; an odd class may refuse.
            return
        if known.handle is not None and handle.hooks_dict_ref() is known.handle.hooks_dict_ref():
            # It is the same node still.
            handle.remove()
            return
        known.handle = handle
        self._handles.append(handle)

    def _came_back(self, known: _Parameter, number: int, grads: tuple[Any, ...]) -> None:
        task = _graph_task() if _graph_task is not None else None
        if task is None or task != known.task:
            known.task = task
            self._told(known.seen, number, grads)

    def end(self) -> None:
        """Take the prehooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
