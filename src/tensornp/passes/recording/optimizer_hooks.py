"""Global hooks on the steps of optimizers, taken away in the end, and what each step has made of its parameters."""

from __future__ import annotations

import functools
import sys
import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.passes.recording.module_hooks import is_followed_here
from tensornp.passes.recording.recorder import Recorder
from tensornp.passes.recording.remembered import Module
from tensornp.passes.recording.scalers import Scalers

_UNREAD = -1


class Parameter:
    """A parameter of an optimizer: by its names, since none is held."""

    __slots__ = ("count", "names")

    def __init__(self, names: tuple[tuple[Module, str], ...], count: int) -> None:
        self.names, self.count = names, count


class Step:
    """A step, from its begin on: `before` and `after` are the rows of the parameters' figures, `_UNREAD` of none.

    `frozen` tells of each parameter whether it required no gradient then. With a closure, in which modules are called
    that nobody knows before, `at_begin` has both of every parameter, by identity. `outer` is the number of the step in
    which it was made.
    """

    __slots__ = (
        "after", "at_begin", "before", "class_name", "frozen", "has_gradients", "is_done", "num_calls", "num_gradients",
        "num_inside", "outer", "parameters", "source",
    )  # fmt: skip

    def __init__(self, name: str, source: tuple[CodeType, int] | None, num_calls: int, num_gradients: int) -> None:
        self.class_name, self.source, self.num_calls, self.num_gradients = name, source, num_calls, num_gradients
        self.parameters: tuple[Parameter, ...] = ()
        self.frozen: tuple[bool, ...] = ()
        self.before, self.after = array("q"), array("q")
        self.at_begin: dict[int, tuple[int, bool]] = {}
        self.is_done = self.has_gradients = False
        self.num_inside = 0
        self.outer: int | None = None

    def rows(self) -> Iterable[tuple[Parameter, bool, int, int]]:
        """Return the parameters that were read before and after it, each with the two numbers of its figures."""
        read = zip(self.parameters, self.frozen, self.before, self.after, strict=False)
        return (one for one in read if _UNREAD not in one[2:])


class OptimizerHooks:
    """The two hooks by which one recorder learns of steps, from `install` to `remove`."""

    def __init__(self, recorder: Recorder, scalers: Scalers) -> None:
        self.steps: list[Step] = []
        self._recorder, self._scalers = recorder, scalers
        self._handles: list[Any] = []
        self._open: dict[tuple[int, int], list[Step | None]] = {}
        self._known: dict[tuple[Any, ...], Parameter] = {}

    def install(self) -> None:
        """Begin."""
        self._handles.append(torch_optimizer.register_optimizer_step_pre_hook(self._began))
        self._handles.append(torch_optimizer.register_optimizer_step_post_hook(self._ended))

    def remove(self) -> None:
        """End, and leave nothing behind: of one that Ctrl-C has kept from being noted there is no handle."""
        for handle in self._handles:
            handle.remove()
        for hooks in (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks):
            for key in [key for key, hook in list(hooks.items()) if getattr(hook, "__self__", None) is self]:
                hooks.pop(key, None)
        self._handles.clear()
        self._open.clear()

    def _began(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        has_closure = any(one is not None for one in (*args[1:2], kwargs.get("closure")))
        self._told(functools.partial(self._begin, has_closure=has_closure), optimizer)

    def _ended(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._told(self._end, optimizer)

    def _told(
        self, take_in: Callable[[torch.optim.Optimizer, FrameType], None], optimizer: torch.optim.Optimizer
    ) -> None:
        # In few words: a compiler that traces this sees that it does nothing.
        if torch.compiler.is_compiling() or self._recorder.is_over:
            return
        try:
            with self._recorder.lock:
                frame = sys._getframe(2)
                with modes.outside_modes():
                    take_in(optimizer, frame)
        except Exception as error:
            self._recorder.problems.append(told("a step of an optimizer", error))

    def _begin(self, optimizer: torch.optim.Optimizer, frame: FrameType, *, has_closure: bool) -> None:
        recorder = self._recorder
        key = threading.get_ident(), id(optimizer)
        if key in self._open and _is_inside_a_step(frame):
            # A class calls the step of the one that it extends: torch tells of both.
            self._open[key].append(None)
            return
        self._open.pop(key, None)
        if not recorder.is_bound and not is_followed_here(recorder):
            return
        tensors, parameters = self._parameters_of(optimizer)
        has_gradients = _has_gradient(optimizer)
        # One with gradients trains another model; one without may be left from a model whose place this one took.
        if recorder.is_bound and not parameters and has_gradients:
            return
        recorder.look_at_gradients()
        self._scalers.step_begins()
        place = recorder.lines.place_of(frame)
        step = Step(type(optimizer).__name__, place, len(recorder.calls), recorder.num_gradients)
        if has_closure and not recorder.is_bound:
            every = _parameters_in(optimizer)
            facts = zip(self._rows(every), (not one.requires_grad for one in every), strict=True)
            step.at_begin = dict(zip(map(id, every), facts, strict=True))
        step.parameters, step.before = parameters, self._rows(tensors)
        step.frozen = tuple(not one.requires_grad for one in tensors)
        step.has_gradients = has_gradients
        # What comes in a closure is taken by this step.
        recorder.held.num_steps = len(self.steps) + (not has_closure)
        step.outer = self._number_of_outer(key[0], frame)
        self.steps.append(step)
        self._open[key] = [step]

    def _end(self, optimizer: torch.optim.Optimizer, _: FrameType) -> None:
        key = threading.get_ident(), id(optimizer)
        step = self._open[key].pop() if key in self._open else None
        if step is None:
            return
        del self._open[key]
        step.is_done, step.num_inside = True, self._recorder.num_gradients - step.num_gradients
        tensors, parameters = self._parameters_of(optimizer)
        self._recorder.forget_parameters(tensors)
        self._recorder.held.num_steps = len(self.steps)
        if step.at_begin and all(id(one) in step.at_begin for one in tensors):
            known = [step.at_begin[id(one)] for one in tensors]
            step.parameters, step.before = parameters, array("q", (row for row, _ in known))
            step.frozen = tuple(is_frozen for _, is_frozen in known)
        if parameters == step.parameters:
            step.after = self._rows(tensors)
            # A closure may have changed it.
            step.frozen = tuple(was and not one.requires_grad for was, one in zip(step.frozen, tensors, strict=True))

    def _number_of_outer(self, thread: int, frame: FrameType) -> int | None:
        """Return the number of the step that another optimizer has under way around a frame, if one has."""
        begun = [one[0] for (ident, _), one in self._open.items() if ident == thread and one]
        outer = begun[0] if begun and _is_inside_a_step(frame) else None
        return self.steps.index(outer) if outer is not None else None

    def _parameters_of(self, optimizer: torch.optim.Optimizer) -> tuple[list[torch.Tensor], tuple[Parameter, ...]]:
        """Return the parameters of an optimizer that modules which are known hold, as they are and by their names."""
        names: dict[int, list[tuple[Module, str]]] = defaultdict(list)
        for module, name, tensor in self._recorder.known_parameters():
            names[id(tensor)].append((module, name))
        tensors = [one for one in _parameters_in(optimizer) if id(one) in names]
        return tensors, tuple(self._parameter(tuple(names[id(one)]), one) for one in tensors)

    def _parameter(self, names: tuple[tuple[Module, str], ...], tensor: torch.Tensor) -> Parameter:
        """Return one object for each parameter, however many steps there are."""
        known = self._known.get(names)
        if known is None:
            known = self._known[names] = Parameter(names, self._recorder.tensors.seen(tensor).count)
        return known

    def _rows(self, tensors: Iterable[torch.Tensor]) -> array[int]:
        # Whether a step has spoilt them is seen by a glance; the next call takes the rest.
        rows = (self._recorder.tensors.glanced(tensor).row for tensor in tensors)
        return array("q", [_UNREAD if row is None else row for row in rows])


def _parameters_in(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _has_gradient(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether any parameter of an optimizer has a gradient, or may have one."""
    unguarded = Unguarded()
    found = any(unguarded.grad_of(one) is not None for one in _parameters_in(optimizer))
    return found or bool(unguarded.left_out)


def _is_inside_a_step(frame: FrameType) -> bool:
    """Return whether a step has begun, and not ended, in the frames around the one of torch that begins a step."""
    code, outer = frame.f_code, frame.f_back
    while outer is not None and outer.f_code is not code:
        outer = outer.f_back
    return outer is not None
