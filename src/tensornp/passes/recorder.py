"""Record the calls of a block, reported by global hooks and a dispatch mode.

Not hooks of each module: encoder layers look for those, and leave their fast path. Never full backward hooks, which
break what a module has written in place (pytorch#61519).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.gradients import have_grads
from tensornp.passes import records
from tensornp.passes.gradients import Awaited, Gradients
from tensornp.passes.names import Known, Names
from tensornp.passes.operators import OperatorMode, graph_task, place_of
from tensornp.passes.readable import tensors_in
from tensornp.passes.records import Call, Step, Value
from tensornp.passes.tensors import Tensors

_FOLLOWED: ContextVar[tuple[Recorder, ...]] = ContextVar("_FOLLOWED", default=())
"""The recorders of this context; another thread and another task of asyncio have others."""
_NEVER_CALLED = (torch.nn.ParameterList, torch.nn.ParameterDict)


@dataclass(slots=True, eq=False)
class _Open:
    """A call that has begun; `edges` keep the nodes of parameters until the outermost call has used them."""

    call: Call
    known: Known
    frame: int
    is_within: bool
    has_calls: bool = False
    entered_at_node: int | None = None
    edges: list[Any] = field(default_factory=list)
    not_awaited: list[Awaited] = field(default_factory=list)


class Recorder:
    """Records the calls of some modules in any thread, or of all modules that this context calls."""

    def __init__(
        self,
        modules: Iterable[torch.nn.Module],
        *,
        has_operators: bool,
        only: str | None,
        keep: str | None,
        has_grads: bool,
        max_calls: int,
        names: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.calls: list[Call] = [Call(0, records.BLOCK)]
        self.known_of: dict[int, Known] = {}
        self.steps: list[Step] = []
        self.open_steps: list[Step] = []
        self.masked_rows: list[tuple[Call, int]] = []
        self.problems: list[str] = []
        self.has_operators, self.only, self.keep, self._has_grads = has_operators, only, keep, has_grads
        self.max_calls, self.is_over = max_calls, False
        self.lock = threading.RLock()
        self.names = Names(names, only, keep)
        self.stacks: dict[int, list[_Open]] = {}
        self._num_ended = 0
        self._first_node = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        self.exits = ExitStack()
        self._mode = OperatorMode(self)
        self._thread = threading.get_ident()
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
            self.exits.callback(handle.remove)
            # Torch forgets its own entry for hooks with keyword arguments.
            self.exits.callback(torch_module._global_forward_hooks_with_kwargs.pop, handle.id, None)
        if self._sees_writes:
            self.exits.enter_context(self._mode)
        elif self.has_operators:
            # Each call of an operator is slower under a mode: it is on in the chosen modules alone.
            self.exits.callback(self._mode.remove)

    def leave(self) -> None:
        """Remove the mode and the hooks; Ctrl-C meanwhile may leave hooks that do nothing."""
        self.is_over = True
        self.exits.close()
        # It refers to this recorder.
        del self._mode
        _FOLLOWED.set(tuple(one for one in _FOLLOWED.get() if one is not self))

    def end(self, namespace: Mapping[str, Any]) -> None:
        """Read the results that the block has bound to names, and forget its objects."""
        self.gradients.end()
        for name, tensor in list(namespace.items()):
            if type(name) is str and not name.startswith("_") and is_tensor(tensor) and self._is_result(tensor):
                self.calls[0].outputs[name] = self.tensors.value(tensor)
        self.names.end(namespace)
        self.stacks.clear()

    def _is_result(self, tensor: torch.Tensor) -> bool:
        """Return whether autograd or a recorded operator computed a tensor in the block."""
        with suppress(Exception):
            if tensor.grad_fn is not None:
                return tensor.grad_fn._sequence_nr() >= self._first_node
            found = self.tensors.before_write(tensor) if self._sees_writes else None
            return found is not None and found.maker is not None
        return False

    @property
    def is_full(self) -> bool:
        return len(self.calls) > self.max_calls

    def innermost(self) -> _Open | None:
        stack = self.stacks.get(threading.get_ident())
        return stack[-1] if stack else None

    def follows_here(self) -> bool:
        """Return whether operators and steps of this context are recorded."""
        return not (self.is_over or self.is_full or modes.is_own_call()) and (
            self in _FOLLOWED.get() or (self.is_bound and threading.get_ident() in self.stacks)
        )

    def add_operator(self, call: Call) -> None:
        call.index, call.ended = len(self.calls), self._num_ended
        self._num_ended += 1
        self.calls.append(call)

    def _follows(self, module: torch.nn.Module) -> bool:
        # Compiled code calls modules that the compiler has made.
        is_made = "compile_subgraph_reason" in module.__dict__
        if is_made or self.is_over or self.is_full or modes.is_own_call() or torch_private.tracing_state():
            return False
        if not self.is_bound:
            return self in _FOLLOWED.get()
        return self.innermost() is not None or self.names.find(module) is not None

    def _began(self, module: torch.nn.Module, args: Any) -> None:
        # First, and in few words: a compiler that traces this sees that it does nothing.
        if torch.compiler.is_compiling() or not self._follows(module):
            return
        is_grad_enabled = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        frame = sys._getframe(1)
        self.record(self._begin, module, args, id(frame), place_of(frame, self.innermost()), is_grad_enabled)
        one = self.innermost() if self.only is not None else None
        is_here = threading.get_ident() == self._thread or graph_task() != -1
        if one is not None and one.is_within and is_here and not self._mode.is_on():
            one.entered_at_node = self._mode.enter()

    def record(self, method: Callable[..., None], *args: Any) -> None:
        """Call a method outside of modes; the program goes on if it fails."""
        try:
            with self.lock, modes.outside_modes():
                method(*args)
        except Exception as error:
            # Near the limit of recursion there is no room for another call.
            too_deep = "calls near Python's recursion limit were not followed"
            self.problems.append(too_deep if isinstance(error, RecursionError) else told("a call of a pass", error))

    def _begin(self, module: torch.nn.Module, args: Any, frame: int, place: Any, is_grad_enabled: bool) -> None:
        stack, outer = self.stacks.setdefault(threading.get_ident(), []), self.innermost()
        known = self.names.find(module)
        if known is None:
            known = self.names.add_root(module) if outer is None else self.names.add_inside(module, outer.known)
        phase = records.FORWARD if graph_task() == -1 else records.RECOMPUTED
        call = Call(len(self.calls), records.MODULE, known.name, known.class_name, nth=known.num_calls, phase=phase)
        call.parent, call.source = (outer.call.index if outer is not None else 0), place
        known.first, known.last, known.num_calls = known.first or call.index, call.index, known.num_calls + 1
        self.known_of[call.index] = known
        self.calls.append(call)
        one = _Open(call, known, frame, known.is_within or (outer is not None and outer.is_within))
        if outer is not None:
            outer.has_calls = True
        stack.append(one)
        self._take(call.inputs, call, tensors_in(args))
        call.params = self._params_of(module)
        if outer is None and is_grad_enabled and self._has_grads:
            if known.parameters is None:
                known.parameters = self.gradients.awaited(module, known.root, self.names)
            one.not_awaited = self.gradients.of_parameters(known.parameters, one.edges)

    def _ended(self, module: torch.nn.Module, args: Any, *rest: Any) -> None:
        if torch.compiler.is_compiling() or self.is_over or torch_private.tracing_state():
            return
        stack = self.stacks.get(threading.get_ident(), [])
        at = next((i for i in reversed(range(len(stack))) if stack[i].known.reference() is module), None)
        if at is not None and not modes.is_own_call():
            # Calls above it have neither returned nor raised anything that torch reports.
            stack[at:], ended = [], stack[at:]
            if any(one.entered_at_node is not None for one in ended):
                self._mode.remove()
            self.record(self._end, ended[0], module, *rest)

    def _end(self, one: _Open, module: torch.nn.Module, *rest: Any) -> None:
        call = one.call
        call.ended, self._num_ended = self._num_ended, self._num_ended + 1
        if len(rest) == 1:
            # Torch leaves out the keywords if the call has raised.
            error = sys.exc_info()[1]
            is_stop = type(error).__name__ == "_StopRecomputationError"
            call.status = records.STOPPED if is_stop else records.RAISED
            call.error = error_text(error) if error is not None else ""
            return
        call.status, (kwargs, result) = records.RETURNED, rest
        self._take(call.inputs, call, tensors_in(kwargs))
        if one.not_awaited:
            # Lazy parameters have got their shapes.
            self.gradients.of_parameters(one.not_awaited, one.edges)
        is_alone = not one.has_calls and bool(module.__dict__.get("_modules"))
        if is_alone or any(value.figures is None for value in call.params.values()):
            # Compiled code and the fast path of an encoder layer call no modules; lazy parameters are complete now.
            before = {path: value for path, value in call.params.items() if value.figures is not None}
            call.params = self._params_of(module, has_calls=not is_alone) | before
        tensors = tensors_in(result)
        self._take(call.outputs, call, tensors, call.index)
        if one.entered_at_node is not None:
            kept = (tensor for child in module.modules() for tensor in child.__dict__.values() if is_tensor(tensor))
            self._mode.follow_nodes((*(tensor for _, tensor in tensors), *kept), one.entered_at_node)
        if self._has_grads:
            for path, tensor in tensors:
                self.gradients.of_value(tensor, call.outputs[path])
        if tensors and isinstance(module, (torch.nn.ReLU, torch.nn.ReLU6)):
            maker = next((value.maker for value in call.inputs.values()), None)
            while maker is not None and self.calls[maker].kind == records.OPERATOR:
                maker = self.calls[maker].parent
            # The channels of Conv1d stand before the positions.
            is_row = maker is not None and self.calls[maker].class_name.endswith("1d")
            call.zero_units = self.tensors.zero_units(tensors[0][1], is_row=is_row)

    def _take(
        self, values: dict[str, Value], call: Call, found: Iterable[tuple[str, torch.Tensor]], maker: int | None = None
    ) -> None:
        for path, tensor in found:
            values[path] = self.tensors.value(tensor, maker, has_sample=True)
            if self.known_of[call.index].is_kept:
                self.tensors.keep(tensor, values[path])

    def _params_of(self, module: torch.nn.Module, *, has_calls: bool = True) -> dict[str, Value]:
        """Return own parameters and buffers, those of lists below, and all below if no call is inside."""
        named = torch.nn.Module.named_parameters
        parameters = list(named(module, recurse=False))
        for prefix, child in module.__dict__.get("_modules", {}).items():
            if child is not None and (not has_calls or isinstance(child, _NEVER_CALLED)):
                parameters += named(child, prefix)
        params = {name: self.tensors.value(tensor) for name, tensor in parameters}
        for name, tensor in module.__dict__.get("_buffers", {}).items():
            # A counter of batches is no value that a call computes with.
            if is_tensor(tensor) and (tensor.dim() or tensor.is_floating_point()):
                if module.training:
                    # Batch norm writes its own in a training, and torch does not count that.
                    self.tensors.forget([tensor])
                params[name] = self.tensors.value(tensor)
                params[name].relation = records.BUFFER
        return params

    def _step_began(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling() and self.follows_here():
            parameters, place = _parameters_of_step(optimizer), place_of(sys._getframe(1))
            name, num_with_gradient = type(optimizer).__name__, sum(have_grads(parameters))
            self.steps.append(Step(name, place, len(self.calls), len(parameters), num_with_gradient))
            self.open_steps.append(self.steps[-1])

    def _step_ended(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self.follows_here() or not self.open_steps:
            return
        step, parameters = self.open_steps.pop(), _parameters_of_step(optimizer)
        # A closure computes the gradients inside of the step.
        step.num_with_gradient = step.num_with_gradient or sum(have_grads(parameters))
        self.gradients.num_steps += 1
        if not self._sees_writes:
            # Fused steps write without being counted.
            self.tensors.forget(parameters)


def _parameters_of_step(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [one for group in optimizer.param_groups for one in group["params"]]
