"""Record the calls of a block, reported by global hooks and a dispatch mode.

Not hooks of each module: encoder layers look for those, and leave their fast path. Never full backward hooks, which
break what a module has written in place (pytorch#61519).
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.gradients import have_grads
from tensornp.passes.gradients import Awaited, Gradients
from tensornp.passes.names import Known, Names, Root
from tensornp.passes.operators import OperatorMode, place_of
from tensornp.passes.readable import is_ordinary, tensors_in
from tensornp.passes.records import (
    BLOCK,
    BUFFER,
    FORWARD,
    MODULE,
    RAISED,
    RECOMPUTED,
    RETURNED,
    STOPPED,
    Call,
    Step,
    Value,
)
from tensornp.passes.tensors import Tensors

_FOLLOWED: ContextVar[tuple[Recorder, ...]] = ContextVar("_FOLLOWED", default=())
"""The recorders of this context; another thread and another task of asyncio have others."""
_graph_task: Any = torch._C._current_graph_task_id
_TOO_DEEP = "calls were not followed that were nested so deep that Python's recursion limit was near"
_NEVER_CALLED = (torch.nn.ParameterList, torch.nn.ParameterDict)
_NORMS = re.compile(r"(?:Lazy)?(?:Conv|ConvTranspose|BatchNorm|InstanceNorm)(\d)d")
_MOST_UNITS = 4096


class _Open:
    """A call that has begun; `edges` keep the nodes of parameters until the outermost call has used them."""

    __slots__ = ("call", "edges", "has_calls", "is_within", "known", "not_awaited")

    def __init__(self, call: Call, known: Known, *, is_within: bool) -> None:
        self.call, self.known, self.is_within = call, known, is_within
        self.has_calls = False
        self.edges: list[Any] = []
        self.not_awaited: list[Awaited] = []


class Recorder:
    """Records the calls of some modules in any thread, or of all modules that this context calls.

    Inside the modules that match `only`, or in all, a mode adds the operators. Inputs and outputs of modules that match
    `keep` are copied. `names` returns the names that the block sees. Keyword arguments are read after the call. A call
    that Ctrl-C has left counts as the one around all later calls until its module returns again.
    """

    def __init__(
        self,
        modules: Iterable[torch.nn.Module] = (),
        *,
        has_operators: bool = False,
        only: str | None = None,
        keep: str | None = None,
        has_grads: bool = True,
        max_calls: int = 100_000,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.calls: list[Call] = [Call(0, BLOCK)]
        self.known_of: dict[int, Known] = {}
        self.steps: list[Step] = []
        self.open_steps: list[int] = []
        self.masked_rows: list[tuple[Call, int]] = []
        self.problems: list[str] = []
        self.has_operators, self.only, self.keep = has_operators, only, keep
        self.max_calls, self.is_full, self.is_over = max_calls, False, False
        self.lock = threading.RLock()
        self.names = Names(names, only, keep)
        self._has_grads = has_grads
        self._stacks: dict[int, list[_Open]] = {}
        self._num_ended = 0
        self._first_node = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        self._exits = ExitStack()
        for module in modules:
            self.names.add_root(module)
        self.is_bound = bool(self.names.roots)
        self._sees_writes = has_operators and only is None
        self.tensors = Tensors(sees_writes=self._sees_writes)
        self.gradients = Gradients(self.tensors, self.lock)

    def begin(self) -> None:
        """Install the hooks, and the mode if operators are followed."""
        _FOLLOWED.set((*_FOLLOWED.get(), self))
        register: Callable[..., Any] = torch_module.register_module_forward_hook
        for handle in (
            torch_module.register_module_forward_pre_hook(self._began),
            register(self._ended, with_kwargs=True, always_call=True),
            torch_optimizer.register_optimizer_step_pre_hook(self._step_began),
            torch_optimizer.register_optimizer_step_post_hook(self._step_ended),
        ):
            self._exits.callback(handle.remove)
            # Torch forgets its own entry for hooks with keyword arguments.
            self._exits.callback(torch_module._global_forward_hooks_with_kwargs.pop, handle.id, None)
        if self.has_operators:
            self._exits.enter_context(OperatorMode(self))

    def leave(self) -> None:
        """Remove the mode and the hooks; Ctrl-C meanwhile may leave hooks that do nothing."""
        self.is_over = True
        self._exits.close()
        _FOLLOWED.set(tuple(one for one in _FOLLOWED.get() if one is not self))

    def end(self, namespace: Mapping[str, Any]) -> None:
        """Read the results that the block has bound to names, and forget its objects."""
        for name, tensor in list(namespace.items()):
            if type(name) is str and not name.startswith("_") and is_tensor(tensor) and self._is_result(tensor):
                self.calls[0].outputs[name] = self.tensors.value(tensor, has_sums=False)
        self.gradients.end()
        self.names.end(namespace)
        self._stacks.clear()

    def _is_result(self, tensor: torch.Tensor) -> bool:
        """Return whether autograd or a recorded operator computed a tensor in the block."""
        try:
            node = tensor.grad_fn
            if node is not None and node._sequence_nr() >= self._first_node:
                return True
            found = self.tensors.before_write(tensor) if self._sees_writes else None
            return found is not None and found.maker is not None
        except Exception:
            return False

    @property
    def has_threads(self) -> bool:
        """Whether calls of several threads were followed."""
        return len(self._stacks) > 1

    def innermost(self) -> _Open | None:
        """Return the innermost call of this thread."""
        stack = self._stacks.get(threading.get_ident())
        return stack[-1] if stack else None

    def follows_here(self) -> bool:
        """Return whether calls of this context are recorded."""
        return not (self.is_over or self.is_full or modes.is_own_call()) and (
            self in _FOLLOWED.get() or (self.is_bound and self.innermost() is not None)
        )

    def add_operator(self, call: Call) -> None:
        """Add the call of an operator that has ended."""
        call.index, call.ended = len(self.calls), self._num_ended
        self._num_ended += 1
        self._add(call)

    def _add(self, call: Call) -> None:
        self.calls.append(call)
        if len(self.calls) > self.max_calls:
            self.is_full = True

    def _follows(self, module: torch.nn.Module) -> bool:
        if self.is_over or self.is_full or torch_private.tracing_state() or modes.is_own_call():
            return False
        if self.is_bound:
            is_followed = self.innermost() is not None or self.names.find(module) is not None
        else:
            is_followed = self in _FOLLOWED.get()
        # Compiled code calls modules that the compiler has made.
        return is_followed and "compile_subgraph_reason" not in module.__dict__

    def _began(self, module: torch.nn.Module, args: Any) -> None:
        # First, and in few words: a compiler that traces this sees that it does nothing.
        if torch.compiler.is_compiling() or not self._follows(module):
            return
        is_grad_enabled = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        self.record(self._begin, module, args, place_of(sys._getframe(1)), is_grad_enabled)

    def record(self, method: Callable[..., None], *args: Any) -> None:
        """Call a method outside of modes; the program goes on if it fails."""
        try:
            with self.lock, modes.outside_modes():
                method(*args)
        except RecursionError:
            # There is no room for another call.
            self.problems.append(_TOO_DEEP)
        except Exception as error:
            self.problems.append(told("a call of a pass", error))

    def _begin(self, module: torch.nn.Module, args: Any, place: Any, is_grad_enabled: bool) -> None:
        stack = self._stacks.setdefault(threading.get_ident(), [])
        outer = stack[-1] if stack else None
        known = self.names.find(module)
        if known is None:
            known = self.names.add_root(module) if outer is None else self.names.add_inside(module, outer.known)
        phase = FORWARD if _graph_task() == -1 else RECOMPUTED
        call = Call(len(self.calls), MODULE, known.name, known.class_name, nth=known.num_calls, phase=phase)
        call.parent, call.source = (outer.call.index if outer is not None else 0), place
        known.first = known.first or call.index
        known.last, known.num_calls = call.index, known.num_calls + 1
        self.known_of[call.index] = known
        self._add(call)
        one = _Open(call, known, is_within=known.is_within or (outer is not None and outer.is_within))
        if outer is not None:
            outer.has_calls = True
        stack.append(one)
        self._take(call.inputs, call, tensors_in(args))
        call.params = self._params_of(module)
        if outer is None and is_grad_enabled and self._has_grads:
            if known.parameters is None:
                known.parameters = list(self._parameters_of(module, known.root))
            one.not_awaited = self.gradients.of_parameters(known.parameters, one.edges)

    def _parameters_of(self, module: torch.nn.Module, root: Root) -> Iterator[Awaited]:
        """Yield the parameters in a module that is called from outside of all modules, each once."""
        for child in torch.nn.Module.modules(module):
            owner = self.names.find(child)
            for name, tensor in child.__dict__.get("_parameters", {}).items():
                if tensor is not None and tensor.requires_grad:
                    yield self.gradients.awaited(child, name, owner.name if owner is not None else "", root)

    def _ended(self, module: torch.nn.Module, args: Any, *rest: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stacks.get(threading.get_ident())
        if stack and not self.is_over and not modes.is_own_call() and not torch_private.tracing_state():
            self.record(self._end, stack, module, *rest)

    def _end(self, stack: list[_Open], module: torch.nn.Module, *rest: Any) -> None:
        at = next((i for i in reversed(range(len(stack))) if stack[i].known.reference() is module), None)
        if at is None:
            return
        one = stack[at]
        call = one.call
        # Calls above it have neither returned nor raised anything that torch reports.
        del stack[at:]
        call.ended, self._num_ended = self._num_ended, self._num_ended + 1
        if len(rest) == 1:
            # Torch leaves out the keywords if the call has raised.
            error = sys.exc_info()[1]
            is_stop = type(error).__name__ == "_StopRecomputationError"
            call.status, call.error = (STOPPED if is_stop else RAISED), error_text(error) if error is not None else ""
            return
        call.status = RETURNED
        kwargs, result = rest
        if kwargs:
            self._take(call.inputs, call, tensors_in(kwargs))
        if one.not_awaited:
            # Lazy parameters have got their shapes.
            self.gradients.of_parameters(one.not_awaited, one.edges)
        if any(value.figures is None for value in call.params.values()):
            call.params = self._params_of(module)
        if not one.has_calls and module.__dict__.get("_modules"):
            # Compiled code and the fast path of an encoder layer compute with weights of modules without a call.
            call.params.update(self._params_below(module))
        for path, tensor in tensors_in(result):
            value = self.tensors.value(tensor, call.index, has_sample=True)
            call.outputs[path] = value
            if one.known.is_kept:
                self.tensors.keep(tensor, value)
            if self._has_grads:
                self.gradients.of_value(tensor, value)
            if call.zero_units is None and isinstance(module, (torch.nn.ReLU, torch.nn.ReLU6)):
                call.zero_units = self._zero_units(tensor, call)

    def _take(self, values: dict[str, Value], call: Call, found: Iterable[tuple[str, torch.Tensor]]) -> None:
        is_kept = self.known_of[call.index].is_kept
        for path, tensor in found:
            values[path] = self.tensors.value(tensor, has_sample=True)
            if is_kept:
                self.tensors.keep(tensor, values[path])

    def _params_of(self, module: torch.nn.Module) -> dict[str, Value]:
        params = {name: self.tensors.value(tensor) for name, tensor in _own_parameters(module)}
        for name, tensor in module.__dict__.get("_buffers", {}).items():
            # A counter of batches is no value that a call computes with.
            if is_tensor(tensor) and (tensor.dim() or tensor.is_floating_point()):
                if module.training:
                    # Batch norm writes its own in a training, and torch does not count that.
                    self.tensors.forget([tensor])
                params[name] = self.tensors.value(tensor)
                params[name].relation = BUFFER
        return params

    def _params_below(self, module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, Value]]:
        for step, child in module.__dict__.get("_modules", {}).items():
            if child is not None:
                for name, tensor in _own_parameters(child):
                    yield f"{prefix}{step}.{name}", self.tensors.value(tensor)
                yield from self._params_below(child, f"{prefix}{step}.")

    def _zero_units(self, tensor: torch.Tensor, call: Call) -> tuple[int, int, int] | None:
        """Count units that were 0 at all positions; return the row of that count, the units and the positions.

        Units lie on axis 1 behind convolutions and their norms, else on the last axis.
        """
        maker = next((value.maker for value in call.inputs.values()), None)
        while maker is not None and maker not in self.known_of:
            maker = self.calls[maker].parent
        images = _NORMS.match(self.known_of[maker].class_name) if maker is not None else None
        dim = tensor.dim()
        if not is_ordinary(tensor) or dim < 2 or not tensor.numel() or not tensor.is_floating_point():
            return None
        if images is not None and dim != int(images[1]) + 2:
            return None
        axis = 1 if images is not None else dim - 1
        num_units = tensor.shape[axis]
        if num_units > _MOST_UNITS:
            return None
        most = tensor.detach().amax([i for i in range(dim) if i != axis])
        count = (most == 0).sum(dtype=torch.float32)
        return self.tensors.table.add(count, has_sums=False), num_units, tensor.numel() // num_units

    def _step_began(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # A class that calls the step of the one that it extends reports both.
        if torch.compiler.is_compiling() or not self._follows_step():
            return
        if id(optimizer) not in self.open_steps:
            num_parameters = sum(len(group["params"]) for group in optimizer.param_groups)
            place: Any = place_of(sys._getframe(1))
            name, num_with_gradient = type(optimizer).__name__, _num_with_gradient(optimizer)
            self.steps.append(Step(name, place, len(self.calls), num_parameters, num_with_gradient))
        self.open_steps.append(id(optimizer))

    def _step_ended(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self._follows_step() or id(optimizer) not in self.open_steps:
            return
        self.open_steps.remove(id(optimizer))
        step = next(one for one in reversed(self.steps) if one.class_name == type(optimizer).__name__)
        if not step.num_with_gradient:
            # A closure computes the gradients inside of the step.
            step.num_with_gradient = _num_with_gradient(optimizer)
        self.gradients.num_steps += 1
        if not self._sees_writes:
            # Fused steps write without being counted.
            self.tensors.forget(one for group in optimizer.param_groups for one in group["params"])

    def _follows_step(self) -> bool:
        is_here = self in _FOLLOWED.get() or (self.is_bound and threading.get_ident() in self._stacks)
        return is_here and not self.is_over


def _num_with_gradient(optimizer: torch.optim.Optimizer) -> int:
    return sum(have_grads([one for group in optimizer.param_groups for one in group["params"]]))


def _own_parameters(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the parameters of a module, and of lists of parameters in it: it computes with these itself."""
    # A traced module has no table of them.
    for name, tensor in module.__dict__.get("_parameters", {}).items():
        if tensor is not None:
            yield prefix + name, tensor
    for name, child in module.__dict__.get("_modules", {}).items():
        if isinstance(child, _NEVER_CALLED):
            yield from _own_parameters(child, f"{prefix}{name}.")
