"""What comes back for values and parameters: nodes of the graph tell, and nothing is set on a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from tensornp.core.lowlevel import torch_private
from tensornp.passes.recording.remembered import Call, Module
from tensornp.passes.recording.seen_tensors import Seen, storage_key

_graph_task: Any = torch._C._current_graph_task_id
_Told = Callable[[Seen, int, Any], None]


class AwaitedParameter:
    """A parameter whose gradient is awaited: by its name in a module, and the storage on which it lies."""

    __slots__ = ("handle", "is_leaf", "is_parameter", "key", "module", "name", "place", "seen", "task")

    def __init__(self, tensor: torch.Tensor, seen: Seen, module: Module, name: str) -> None:
        self.seen, self.module, self.name, self.key = seen, module, name, storage_key(tensor)
        self.place, self.is_leaf = place_of(module, name), tensor.is_leaf
        self.is_parameter = isinstance(tensor, torch.nn.Parameter)
        self.handle: Any = None
        self.task: int | None = None


class AwaitedGradients:
    """Prehooks of nodes: `told` gets the state of a tensor, its place among the gradients that have come, and these."""

    def __init__(self, told: _Told, is_to_be_added: Callable[[AwaitedParameter], None]) -> None:
        self.parameters: dict[tuple[int, str], AwaitedParameter] = {}
        self._in_functional_calls: dict[tuple[int, str], dict[int | None, AwaitedParameter]] = {}
        self._told, self._is_to_be_added = told, is_to_be_added
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

    def of_parameter(
        self, tensor: torch.Tensor, name: str, seen: Seen, call: Call, module: Module | None = None
    ) -> None:
        """Have the node that accumulates the gradient of a parameter, of the module that is called, tell what comes.

        The call keeps it until it has used the parameter, from when on the graph does; kept for longer, it would keep
        the parameter too, and the shape that this had.
        """
        made = AwaitedParameter(tensor, seen, module or call.module, name)
        known = self.parameters.get(made.place)
        if call.is_functional and (known is None or known.key != made.key or not made.is_parameter):
            known = self._in_functional_calls.setdefault(made.place, {}).setdefault(made.key, made)
        elif known is None or known.key != made.key:
            known = self.parameters[made.place] = made
        try:
            edge = _edge_of(tensor)
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

    def _came_back(self, known: AwaitedParameter, number: int, grads: tuple[Any, ...]) -> None:
        task = _graph_task() if _graph_task is not None else None
        if task is None or task != known.task:
            known.task = task
            if known.is_leaf and known.is_parameter:
                self._is_to_be_added(known)
            # Of tied weights, two names know of one gradient.
            if task is None or task != known.seen.task:
                known.seen.task = task
                self._told(known.seen, number, grads)

    def found(self, held: Iterable[tuple[Module, str, torch.Tensor]]) -> Iterator[tuple[AwaitedParameter, bool]]:
        """Yield what was awaited in each place, and whether it is what a module held there, or `held` in the end.

        A functional call computes with the parameters themselves, or with what it has put in their places.
        """
        keys = {place_of(module, name): storage_key(tensor) for module, name, tensor in held}
        for place in {**self.parameters, **self._in_functional_calls}:
            given = self._in_functional_calls.get(place, {})
            one = given.get(keys.get(place))
            own = self.parameters.get(place) or (one if one is not None and one.is_parameter else None)
            yield (own, True) if own is not None else (next(reversed(given.values())), False)

    def end(self) -> None:
        """Take the prehooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _edge_of(tensor: torch.Tensor) -> Any:
    """Return the edge of a tensor of any class, which sees nothing of it: torch makes a view of a leaf for it."""
    if type(tensor) is not torch.nn.Parameter or not tensor.is_leaf:
        with torch_private.without_dispatch_classes():
            return get_gradient_edge(tensor)
    # As torch does, at half the cost.
    with torch.enable_grad():
        view: Any = tensor.view_as(tensor)
    return GradientEdge(view.grad_fn.next_functions[0][0], 0)


def place_of(module: Module, name: str) -> tuple[int, str]:
    """Return by what a parameter of a module is known: the number of its model, and its name there."""
    return module.root, ".".join((module.name, name)).lstrip(".")
