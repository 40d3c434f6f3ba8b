"""Gradients as they come: prehooks of graph nodes report them, and nothing is set on a tensor."""

from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # public, but not listed

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.gradients import grad_in_hook, have_grads
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.passes.records import Gradient, Value
from tensornp.passes.tensors import Tensors


@dataclass(slots=True, eq=False)
class Awaited:
    """A parameter whose gradient is awaited; `held` are rows of its `.grad` before that."""

    module: Any
    name: str
    gradient: Gradient
    root: Any
    handle: Any = None
    held: list[int] = field(default_factory=list)
    num_steps: int = -1

    @property
    def parameter(self) -> torch.Tensor | None:
        # A traced module has no table of them.
        table = getattr(self.module(), "__dict__", {}).get("_parameters", {})
        return table[self.name] if self.name in table else None  # noqa: SIM401


class Gradients:
    """Prehooks of nodes; `events` are the gradients that came, in order, each with its target and row."""

    def __init__(self, tensors: Tensors, lock: Any) -> None:
        self.events: list[tuple[Value | Gradient, int, int | None]] = []
        self.parameters: list[Awaited] = []
        self.num_steps = 0
        self.is_over = False
        self._tensors, self._lock = tensors, lock
        self._handles: list[Any] = []
        self._values: set[int] = set()
        self._by_id: dict[int, Awaited] = {}

    def of_value(self, tensor: torch.Tensor, value: Value) -> None:
        """Have the node that made a tensor report its gradient."""
        if id(value) in self._values or not value.requires_grad:
            return
        try:
            node, number = tensor.grad_fn, tensor.output_nr
        except Exception:
            # Torch makes the node of a view when it is asked for, and may refuse; so may a class.
            return
        if node is not None and not torch_private.is_functorch_wrapper(tensor):
            self._values.add(id(value))
            self._handles.append(node.register_prehook(functools.partial(self._came_back, value, number)))

    def awaited(self, model: torch.nn.Module, root: Any, names: Any) -> list[Awaited]:
        """Return the parameters below a module, by their `names`; a tied one has its first name."""
        found = {}
        for child in torch.nn.Module.modules(model):
            owner = names.find(child)
            for name, tensor in child.__dict__.get("_parameters", {}).items():
                if tensor is not None and tensor.requires_grad:
                    one = self._by_id.get(id(tensor))
                    if one is None or one.parameter is not tensor:
                        gradient = Gradient(f"{owner.name if owner is not None else ''}.{name}".lstrip("."))
                        one = self._by_id[id(tensor)] = Awaited(weakref.ref(child), name, gradient, root)
                        self.parameters.append(one)
                    found[id(one)] = one
        return list(found.values())

    def of_parameters(self, parameters: list[Awaited], edges: list[Any]) -> list[Awaited]:
        """Await the gradients of some parameters; return those that have no node yet."""
        return [one for one in parameters if not self._of_parameter(one, edges)]

    def _of_parameter(self, one: Awaited, edges: list[Any]) -> bool:
        # The caller holds the edges until the outermost call has used the parameter: from then on the graph does.
        tensor = one.parameter
        if tensor is None or not tensor.requires_grad:
            return True
        if isinstance(tensor, UninitializedTensorMixin):
            return False
        try:
            # Its class sees nothing of the view that torch makes.
            with torch_private.without_dispatch_classes():
                edge = get_gradient_edge(tensor)
            handle = edge.node.register_prehook(functools.partial(self._came_back, one, edge.output_nr))
        except Exception:
            # An odd class may refuse.
            return False
        edges.append(edge)
        if one.handle is not None and handle.hooks_dict_ref() is one.handle.hooks_dict_ref():
            # It is the same node still.
            handle.remove()
            return True
        one.handle = handle
        self._handles.append(handle)
        return True

    @never_compiled
    def _came_back(self, target: Value | Awaited, number: int, grads: tuple[Any, ...]) -> None:
        if self.is_over or number >= len(grads) or grads[number] is None:
            return
        with self._lock, modes.outside_modes():
            if isinstance(target, Awaited) and target.num_steps < self.num_steps:
                # The first gradient of all, or the first after a step, is about to be added to this one.
                target.num_steps, tensor = self.num_steps, target.parameter
                held = grad_in_hook(tensor) if tensor is not None and tensor.is_leaf else None
                row = self._tensors.read_gradient(held) if held is not None else None
                target.held += [row] if row is not None else []
            row = self._tensors.read_gradient(grads[number])
            self.events.append((target.gradient if isinstance(target, Awaited) else target, len(self.events), row))

    def end(self) -> None:
        """Remove the prehooks, and note which parameters have a `.grad` now."""
        self.is_over = True
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        leaves = [(one, tensor) for one in self.parameters if (tensor := one.parameter) is not None and tensor.is_leaf]
        for (one, _), is_held in zip(leaves, have_grads([tensor for _, tensor in leaves]), strict=True):
            one.gradient.is_held_at_end = is_held
