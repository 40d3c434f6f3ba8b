"""What is remembered while a pass is followed: its calls as they begin, what each got and gave, and what came back."""

from __future__ import annotations

import fnmatch
import functools
import sys
import threading
import weakref
from collections.abc import Iterable
from types import CodeType
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import class_name, error_text, is_tensor
from tensornp.core.lowlevel.private_names import find
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import Path
from tensornp.passes.kept import Kept
from tensornp.passes.records import FORWARD, LEFT, RAISED, RECOMPUTED, RETURNED, STOPPED_EARLY
from tensornp.passes.seen_tensors import Seen, SeenTensors, storage_key, version_of
from tensornp.passes.source_lines import SourceLines

_graph_task = find("_C._current_graph_task_id")
_STOPS = ("_StopRecomputationError",)
"""Errors by which a checkpoint ends what it calls again, once it has what the backward needs."""


class Module:
    """A module that was called or may be: its place in a model, and nothing that keeps it alive."""

    __slots__ = ("class_name", "name", "num_calls", "reference", "root")

    def __init__(self, module: torch.nn.Module, root: int, name: str) -> None:
        self.reference = weakref.ref(module)
        self.root, self.name = root, name
        self.class_name = class_name(type(module))
        self.num_calls = 0


class Got:
    """A tensor that a call got or gave; `before` is its storage and version as the call began."""

    __slots__ = ("before", "path", "relation", "seen", "tensor")

    def __init__(self, path: Path | None, seen: Seen, before: Any = None, relation: str = "") -> None:
        self.path, self.seen, self.before, self.relation = path, seen, before, relation
        self.tensor: torch.Tensor | None = None


class Call:
    """A call, from its begin on."""

    __slots__ = (
        "depth", "error", "index", "inputs", "is_kept", "is_within", "module", "nth", "num_handled", "order", "outputs",
        "params", "parent", "phase", "source", "status", "thread",
    )  # fmt: skip

    def __init__(self, index: int, module: Module, parent: Call | None, thread: int) -> None:
        self.index, self.module, self.thread = index, module, thread
        self.parent = parent.index if parent is not None else None
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.nth, self.order = module.num_calls, -1
        self.phase, self.status, self.error = FORWARD, LEFT, ""
        self.source: tuple[CodeType, int] | None = None
        self.inputs: list[Got] = []
        self.outputs: list[Got] = []
        self.params: list[Got] = []
        self.num_handled: Any = None
        self.is_kept = False
        self.is_within: bool = parent is not None and parent.is_within


class Recorder:
    """Follows calls of modules: `began` and `ended` are what hooks call, in any thread.

    Inside the modules whose names match `only`, or inside all, a mode adds the `operations`. What calls whose names
    match `keep` got and gave is copied.
    """

    def __init__(
        self,
        roots: Iterable[torch.nn.Module],
        *,
        has_grads: bool,
        max_samples: int,
        only: str | None = None,
        keep: str | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self.operations: list[Any] = []
        self.only, self.keep = only, keep
        self.kept = Kept()
        self.tensors = SeenTensors()
        self.parameters: dict[tuple[int, str], tuple[Seen, Module]] = {}
        self.roots: list[tuple[Any, str]] = []
        self.results: list[tuple[str, Seen]] = []
        self.problems: list[str] = []
        self.lines = SourceLines()
        self.is_over = False
        self._has_grads, self._max_samples = has_grads, max_samples
        self.lock = threading.RLock()
        self._modules: dict[int, Module] = {}
        self._stacks: dict[int, list[Call]] = {}
        self._num_ended = self.num_gradients = 0
        self._edges: list[Any] = []
        self._handles: list[Any] = []
        for root in roots:
            self._know(root)
        self.is_bound = bool(self.roots)

    def follows(self, module: torch.nn.Module, is_in_context: bool) -> bool:
        """Return whether a call of `module` in this thread is one of the pass."""
        if self.is_over or (_is_graph(module) and self._known(module) is None):
            return False
        if not self.is_bound:
            return is_in_context
        return bool(self._stacks.get(threading.get_ident())) or self._known(module) is not None

    def innermost(self) -> Call | None:
        """Return the call that this thread is in."""
        stack = self._stacks.get(threading.get_ident())
        return stack[-1] if stack else None

    @property
    def _has_samples(self) -> bool:
        return len(self.calls) <= self._max_samples

    def _know(self, root: torch.nn.Module) -> None:
        """Take in the names of a model that was given, or is called by no other module."""
        number = len(self.roots)
        self.roots.append((weakref.ref(root), class_name(type(root))))
        for name, module in root.named_modules():
            if self._known(module) is None:
                self._modules[id(module)] = Module(module, number, name)

    def _known(self, module: torch.nn.Module) -> Module | None:
        known = self._modules.get(id(module))
        return known if known is not None and known.reference() is module else None

    def _of(self, module: torch.nn.Module, parent: Call | None) -> Module:
        known = self._known(module)
        if known is None and parent is None:
            self._know(module)
            known = self._known(module)
        if known is None:
            # It was put into the model inside the block, or is no registered part of it.
            above = parent.module if parent is not None else None
            name = f"{above.name}.({class_name(type(module))})".lstrip(".") if above is not None else ""
            known = Module(module, above.root if above is not None else 0, name)
            self._modules[id(module)] = known
        return known

    def began(self, module: torch.nn.Module, args: Any) -> None:
        """Take in a call that begins."""
        place = self.lines.place_of(sys._getframe(2))
        with modes.undisturbed(), self.lock:
            self._begin(module, args, place)

    def _begin(self, module: torch.nn.Module, args: Any, place: tuple[CodeType, int] | None) -> None:
        thread = threading.get_ident()
        stack = self._stacks.get(thread)
        if stack is None:
            stack = self._stacks[thread] = []
        parent = stack[-1] if stack else None
        call = Call(len(self.calls), self._of(module, parent), parent, thread)
        call.module.num_calls += 1
        call.num_handled = id(sys.exc_info()[1])
        if _graph_task is not None and _graph_task() != -1:
            call.phase = RECOMPUTED
        call.is_within = call.is_within or _is_named(call, self.only)
        call.is_kept = _is_named(call, self.keep)
        call.source = place
        self.calls.append(call)
        stack.append(call)
        call.inputs = [self._input(path, tensor, call) for path, tensor in _tensors_of(args)]
        call.params = list(self._params_of(module, call))

    def _input(self, path: Path | None, tensor: torch.Tensor, call: Call) -> Got:
        before = storage_key(tensor), version_of(tensor), id(tensor)
        got = Got(path, self.tensors.seen(tensor, has_sample=self._has_samples), before)
        if call.is_kept:
            got.tensor = self.kept.copied(tensor, got.seen)
        return got

    def _params_of(self, module: torch.nn.Module, call: Call) -> Iterable[Got]:
        # A traced module has no table of them.
        parameters, buffers = (module.__dict__.get(table, {}) for table in ("_parameters", "_buffers"))
        for name, tensor in parameters.items():
            if tensor is not None:
                seen = self.tensors.seen(tensor)
                if seen.requires_grad and self._has_grads:
                    self._await_parameter(tensor, name, seen, call)
                yield Got((None, name), seen)
        for name, tensor in buffers.items():
            # A counter of batches is none of the values that a call computes with.
            if is_tensor(tensor) and not (tensor.dim() == 0 and not tensor.is_floating_point()):
                yield Got((None, name), self.tensors.seen(tensor))

    def ended(self, module: torch.nn.Module, kwargs: Any, result: Any, is_raised: bool) -> None:
        """Take in what a call gave, or that an error ended it."""
        with modes.undisturbed(), self.lock:
            self._end(module, kwargs, result, is_raised)

    def _end(self, module: torch.nn.Module, kwargs: Any, result: Any, is_raised: bool) -> None:
        stack = self._stacks.get(threading.get_ident()) or []
        known = self._known(module)
        at = next((i for i in reversed(range(len(stack))) if stack[i].module is known), None)
        if at is None:
            return
        call = stack[at]
        # What lies above it has neither returned nor raised anything that torch tells of.
        del stack[at:]
        call.order, self._num_ended = self._num_ended, self._num_ended + 1
        error = sys.exc_info()[1]
        if is_raised and error is not None and id(error) != call.num_handled:
            is_stop = class_name(type(error)) in _STOPS
            call.status, call.error = (STOPPED_EARLY if is_stop else RAISED), error_text(error)
            return
        call.status = RETURNED
        if kwargs:
            call.inputs += [self._input(path, tensor, call) for path, tensor in _tensors_of(kwargs)]
        before = {got.before[0]: got.before for got in call.inputs if got.before[0] is not None}
        for path, tensor in _tensors_of(result):
            seen = self.tensors.seen(tensor, maker=call.index, has_sample=self._has_samples)
            gave = Got(path, seen, None, _relation(tensor, before))
            if call.is_kept:
                gave.tensor = self.kept.copied(tensor, seen)
            call.outputs.append(gave)
            if self._has_grads and call.phase == FORWARD:
                self._await_gradient(tensor, seen)

    def _await_gradient(self, tensor: torch.Tensor, seen: Seen) -> None:
        """Have the node that made `tensor` tell what comes back for it, once."""
        try:
            node, number = tensor.grad_fn, tensor.output_nr
        except Exception:
            # Torch makes the node of a view when it is asked for, and may refuse; so may a class.
            return
        if node is None or seen.is_awaited:
            return
        seen.is_awaited = True
        self._handles.append(node.register_prehook(functools.partial(self._came_back, seen, number)))

    def _await_parameter(self, tensor: torch.Tensor, name: str, seen: Seen, call: Call) -> None:
        """Have the node that accumulates the gradient of a parameter tell what comes, and hold it: else it goes."""
        place = call.module.root, f"{call.module.name}.{name}".lstrip(".")
        if place in self.parameters:
            return
        self.parameters[place] = seen, call.module
        try:
            edge = get_gradient_edge(tensor)
        except Exception:
            # Of an uninitialized one, of one that was computed.
            return
        self._edges.append(edge)
        self._handles.append(edge.node.register_prehook(functools.partial(self._came_back, seen, 0)))

    def _came_back(self, seen: Seen, number: int, grads: tuple[Any, ...]) -> None:
        if self.is_over or number >= len(grads) or not is_tensor(grads[number]):
            return
        with modes.undisturbed(), self.lock:
            row = self.tensors.read(grads[number])
            if row is not None:
                seen.gradients.append((self.num_gradients, row))
                self.num_gradients += 1

    def end(self) -> None:
        """Forget all that leads to the user's objects."""
        self.is_over = True
        self.tensors.end()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._edges.clear()
        self._stacks.clear()


def _is_named(call: Call, pattern: str | None) -> bool:
    """Return whether the name of a module that is called, or the class of a model, matches a pattern."""
    return pattern is not None and fnmatch.fnmatchcase(call.module.name or call.module.class_name, pattern)


def _is_graph(module: torch.nn.Module) -> bool:
    """Return whether a compiler has made the module."""
    return "torch._dynamo" in sys.modules and class_name(type(module)) == "GraphModule"


def _tensors_of(tree: Any) -> Iterable[tuple[Path | None, torch.Tensor]]:
    """Return the tensors in arguments or in a result, each with the path to it."""
    if is_tensor(tree):
        return [(None, tree)]
    if type(tree) is tuple and len(tree) == 1 and is_tensor(tree[0]):
        return [((None, "[0]"), tree[0])]
    return [(path, leaf) for path, leaf in leaves(tree) if is_tensor(leaf)]


def _relation(tensor: torch.Tensor, before: dict[int, Any]) -> str:
    """Return what a result is to the arguments, by their storages, versions and identities as the call began."""
    found = before.get(storage_key(tensor) or -1)
    if found is None:
        return "new"
    _, version, number = found
    now = version_of(tensor)
    if version is not None and now is not None and now != version:
        return "in place"
    return "same object" if id(tensor) == number else "view"
