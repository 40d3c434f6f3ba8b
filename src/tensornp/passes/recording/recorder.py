"""What is remembered while a pass is followed: its calls as they begin, what each got and gave, and what came back."""

from __future__ import annotations

import fnmatch
import os
import sys
import threading
import weakref
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # public, but not listed

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.namespace.caller import name_of
from tensornp.passes.recording.at_begin import AtBegin
from tensornp.passes.recording.calling_frames import came_through, is_within, keywords_of
from tensornp.passes.recording.distributed import note_of_call
from tensornp.passes.recording.gradients import AwaitedGradients, AwaitedParameter, place_of
from tensornp.passes.recording.held_gradients import HeldGradients
from tensornp.passes.recording.kept import Kept
from tensornp.passes.recording.not_called import NotCalled
from tensornp.passes.recording.remembered import Call, Got, Module, facts_of, step_to
from tensornp.passes.recording.seen_tensors import Seen, SeenTensors, not_looked_into, storage_key, version_of
from tensornp.passes.recording.sharded_gradients import ShardedGradients
from tensornp.passes.recording.source_lines import SourceLines
from tensornp.passes.recording.tensors_in import Found, LooksInside
from tensornp.passes.recording.zero_units import UnitsOfCalls
from tensornp.passes.records import (
    BUFFER,
    COMPILED,
    HOOKS,
    NOT_SEEN,
    PRE_HOOKS,
    RAISED,
    RECOMPUTED,
    RETURNED,
    STOPPED_EARLY,
    WRITTEN,
)

_graph_task: Any = torch._C._current_graph_task_id
_functional_code = getattr(torch.nn.utils.stateless._functional_call, "__code__", None)
_CALLS = ("_call_impl", "_wrapped_call_impl", "__call__", "inner")
"""Functions of torch between a call and who calls."""
_STOPS = ("_StopRecomputationError",)
"""Errors by which a checkpoint ends what it calls again, once it has what the backward needs."""
_COMPILERS = ("torch/_dynamo/", "torch/_inductor/", "torch/_functorch/")
_MOST_FRAMES = 16


class Recorder:
    """Follows calls of modules: `began` and `ended` are what hooks call, in any thread.

    Inside the modules whose names match `only`, or inside all, a mode adds the `operations`. What calls whose names
    match `keep` got and gave is copied. Models are named by `names`, what the block sees when it is asked.
    """

    def __init__(
        self,
        roots: Iterable[torch.nn.Module],
        *,
        has_grads: bool,
        max_samples: int,
        only: str | None = None,
        keep: str | None = None,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.calls: list[Call] = []
        self.operations: list[Any] = []
        self.only, self.keep, self._seen_names = only, keep, names
        self._models: list[tuple[str, str]] = []
        self._num_models: Counter[str] = Counter()
        self.kept = Kept()
        self._looks = LooksInside()
        self.tensors = SeenTensors()
        self.units = UnitsOfCalls(self.tensors.table)
        self.at_begin = AtBegin()
        self.held = HeldGradients(self.tensors)
        self.sharded = ShardedGradients(self.tensors)
        self._not_called = NotCalled()
        self.not_called: list[tuple[Module, str]] = []
        self.not_looked_at: list[tuple[Module, str]] = []
        self.gradients = AwaitedGradients(self._came_back, self._is_to_be_added)
        self._held: set[int] = set()
        self.roots: list[tuple[Any, str]] = []
        self.results: list[tuple[str, Seen]] = []
        self.codes: list[CodeType] = []
        self.compiled_since: list[str] = []
        self.problems: list[str] = []
        self.lines = SourceLines()
        self.is_over = self._is_ended = self.has_operators = False
        self.thread = threading.get_ident()
        self.has_others = self.has_compiled = self.has_inference = False
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._has_grads, self._max_samples = has_grads, max_samples
        self._modules: dict[int, Module] = {}
        self._names: Counter[tuple[int, str]] = Counter()
        self._stacks: dict[int, list[Call]] = {}
        self._num_ended = self.num_gradients = 0
        self.of_kept_graphs: set[int] = set()
        self.backwards: list[int] = []
        self._last_tasks: list[int] = []
        for root in roots:
            self._know(root)
        self.is_bound = bool(self.roots)

    @property
    def is_at_work(self) -> bool:
        """Whether what runs now may be followed: not in a forked process, nor what a look of tensornp's own calls."""
        return not self.is_over and self._process == os.getpid() and not modes.is_own_call()

    def follows(self, module: torch.nn.Module, is_in_context: bool, *, is_compiled: bool = False) -> bool:
        """Return whether a call of `module` in this thread is one of the pass; none of a forked process is.

        Nor is it one where a module that `is_compiled` in place runs as it was, which its call there has told.
        """
        if not self.is_at_work or _is_made_by_compiler(module):
            return False
        inner = None if is_compiled else self.innermost()
        if inner is not None and inner.is_compiled and inner.module.reference() is module:
            return False
        if self.is_bound:
            is_followed = bool(self._stacks.get(threading.get_ident())) or self._known(module) is not None
        else:
            is_followed = is_in_context
        if not is_followed and not self.calls:
            self.has_others = True
            inner = module.__dict__.get("_modules", {}).get("_orig_mod")
            self.has_compiled = self.has_compiled or (inner is not None and self._known(inner) is not None)
        return is_followed

    def innermost(self) -> Call | None:
        """Return the call that this thread is in."""
        stack = self._stacks.get(threading.get_ident())
        return stack[-1] if stack else None

    @property
    def has_threads(self) -> bool:
        """Whether calls of several threads were followed."""
        return len(self._stacks) > 1

    @property
    def _has_samples(self) -> bool:
        return len(self.calls) <= self._max_samples

    def _know(self, root: torch.nn.Module) -> None:
        """Take in the names of a model that was given, or is called by no other module."""
        number = len(self.roots)
        self.roots.append((weakref.ref(root), facts_of(type(root)).class_name))
        self._models.append(self._named(root) if self.only or self.keep else ("", ""))
        codes: dict[str, tuple[Any, str]] = {"": (root, "")}
        self._modules[id(root)] = Module(root, number, "", "")
        try:
            for name, module in torch.nn.Module.named_modules(root):
                above, _, step = name.rpartition(".")
                parent, code = codes.get(above, (None, ""))
                if name:
                    codes[name] = module, code + step_to(parent, step)
                    if self._known(module) is None:
                        self._modules[id(module)] = Module(module, number, name, codes[name][1])
        except Exception as error:
            # Its own parts have no names then.
            self.problems.append(told("the names of a model", error))

    def _named(self, root: torch.nn.Module) -> tuple[str, str]:
        """Return the name that is bound to a model, empty where none is, and the one by which it is shown."""
        code = name_of(root, self._seen_names())
        name = code or facts_of(type(root)).class_name
        self._num_models[name] += 1
        return code, f"{name} #{self._num_models[name]}" if self._num_models[name] > 1 else name

    def _is_named(self, module: Module, pattern: str | None) -> bool:
        """Return whether a pattern matches the name of a module, with that of its model or without, or its expression.

        A model to which no name was bound when it was first called has that of its class.
        """
        if pattern is None:
            return False
        code, model = self._models[module.root]
        names = [module.name or module.class_name, ".".join(filter(None, (model, module.name)))]
        if code and module.code is not None:
            names.append(code + module.code)
        return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in names)

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
            root, prefix = (above.root, above.name) if above is not None else (0, "")
            name = f"{prefix}.({facts_of(type(module)).class_name})".lstrip(".")
            self._names[root, name] += 1
            if (number := self._names[root, name]) > 1:
                name = f"{name[:-1]} {number})"
            known = self._modules[id(module)] = Module(module, root, name, None)
        return known

    def began(self, module: torch.nn.Module, args: Any, *, is_compiled: bool = False) -> None:
        """Take in a call that begins."""
        frame = sys._getframe(2)
        self.has_inference = self.has_inference or torch.is_inference_mode_enabled()
        place, is_grad_enabled, keywords = self.lines.place_of(frame), torch.is_grad_enabled(), keywords_of(frame)
        with self.lock:
            if not self.is_over:
                with modes.outside_modes():
                    self._begin(module, args, keywords, place, is_grad_enabled, frame, is_compiled)

    def _begin(
        self,
        module: torch.nn.Module,
        args: Any,
        keywords: dict[str, Any] | None,
        place: tuple[CodeType, int] | None,
        is_grad_enabled: bool,
        frame: FrameType,
        is_compiled: bool,
    ) -> None:
        thread = threading.get_ident()
        stack = self._stacks.get(thread)
        if stack is None:
            stack = self._stacks[thread] = []
        while stack and not is_within(stack[-1].frame, frame.f_back):
            # Something has ended it of which torch does not tell.
            stack.pop().edges.clear()
        parent = stack[-1] if stack else None
        call = Call(len(self.calls), self._of(module, parent), parent, thread, id(frame))
        call.module.num_calls += 1
        call.is_functional = call.is_functional or _is_functional(frame)
        if _graph_task is not None and (task := _graph_task()) != -1:
            call.phase, call.task = RECOMPUTED, task
        call.is_within = call.is_within or self._is_named(call.module, self.only)
        call.is_kept = self._is_named(call.module, self.keep)
        call.source = place
        call.is_grad_enabled = is_grad_enabled
        # A scripted one has it elsewhere.
        call.is_training = module.__dict__.get("training") is not False
        call.has_grads, call.num_gradients = self._has_grads and is_grad_enabled, self.num_gradients
        call.is_compiled = is_compiled
        call.has_keywords = keywords is not None
        call.notes = tuple(filter(None, (*_own_hooks(module), note_of_call(facts_of(type(module)).wrapper))))
        self.calls.append(call)
        stack.append(call)
        is_inner = parent is not None
        call.inputs = [self._input(one, call) for one in self._looks.tensors_in(args, is_inner=is_inner)]
        if keywords:
            call.inputs += [self._input(one, call) for one in self._looks.tensors_in(keywords, is_inner=is_inner)]
        call.params = list(self._params_of(module, call))

    def _input(self, one: Found, call: Call) -> Got:
        tensor = one.tensor
        if tensor is None:
            return Got(one.path, not_looked_into(one.note), (None, None, 0))
        before = storage_key(tensor), version_of(tensor), id(tensor)
        seen = self.tensors.seen(tensor, has_sample=self._has_samples)
        got = Got(one.path, seen, before, is_in_object=one.is_in_object)
        if call.is_kept:
            got.tensor = self.kept.copied(tensor, got.seen)
        return got

    def _params_of(self, module: torch.nn.Module, call: Call) -> Iterable[Got]:
        # A traced module has no table of them.
        buffers = module.__dict__.get("_buffers", {})
        for name, tensor in _own_parameters(module):
            if tensor is not None:
                self._held.add(storage_key(tensor) or -1)
                seen = self.tensors.seen(tensor)
                if isinstance(tensor, UninitializedTensorMixin):
                    # It becomes another one in the call; a node that was asked for now would keep its shape.
                    call.is_lazy = True
                elif seen.requires_grad and call.has_grads:
                    self.sharded.expect(place_of(call.module, name), tensor)
                    self.gradients.of_parameter(tensor, name, seen, call)
                yield self._weight(module, name, tensor, seen, call)
        for name, tensor in buffers.items():
            # A counter of batches is none of the values that a call computes with.
            if is_tensor(tensor) and not (tensor.dim() == 0 and not tensor.is_floating_point()):
                # Batch norm writes its own in a training, and torch does not count that.
                seen = self.tensors.seen(tensor, is_written=module.training)
                yield self._weight(module, name, tensor, seen, call, BUFFER)

    def _weight(
        self, module: torch.nn.Module, name: str, tensor: torch.Tensor, seen: Seen, call: Call, relation: str = ""
    ) -> Got:
        got = Got((None, name), seen, relation=relation)
        got.since = self.at_begin.since(module, name, tensor, is_functional=call.is_functional)
        if seen.operator is not None and got.since in ("", NOT_SEEN):
            got.since = WRITTEN
        return got

    def _params_below(self, module: torch.nn.Module, call: Call, prefix: str = "") -> Iterator[Got]:
        for step, child in module.__dict__.get("_modules", {}).items():
            for name, tensor in child.__dict__.get("_parameters", {}).items() if child is not None else ():
                if tensor is not None and not isinstance(tensor, UninitializedTensorMixin):
                    self._held.add(storage_key(tensor) or -1)
                    got = self._weight(child, name, tensor, self.tensors.seen(tensor), call)
                    got.path = None, f"{prefix}{step}.{name}"
                    yield got
            if child is not None:
                yield from self._params_below(child, call, f"{prefix}{step}.")

    def ended(self, module: torch.nn.Module, kwargs: Any, result: Any, is_raised: bool) -> None:
        """Take in what a call gave, or that an error ended it."""
        frame = sys._getframe(2)
        with self.lock:
            if not self.is_over:
                with modes.outside_modes():
                    self._end(module, kwargs, result, is_raised, frame)

    def _end(self, module: torch.nn.Module, kwargs: Any, result: Any, is_raised: bool, frame: FrameType) -> None:
        stack = self._stacks.get(threading.get_ident()) or []
        known = self._known(module)
        at = next((i for i in reversed(range(len(stack))) if stack[i].module is known), None)
        if at is None:
            return
        call = stack[at]
        # What lies above it has neither returned nor raised anything that torch tells of.
        for left in stack[at:]:
            left.edges.clear()
        del stack[at:]
        call.order, self._num_ended = self._num_ended, self._num_ended + 1
        error = sys.exc_info()[1]
        if is_raised and error is not None and came_through(error, frame):
            is_stop = type(error).__name__ in _STOPS
            call.status, call.error = (STOPPED_EARLY if is_stop else RAISED), error_text(error)
            return
        call.status = RETURNED
        if call.is_lazy:
            call.params = list(self._params_of(module, call))
            call.edges.clear()
        is_alone = call.is_compiled or call.module.is_torch or call.module.class_name == COMPILED
        if self.calls[-1] is call and is_alone and module.__dict__.get("_modules"):
            # Compiled code, and the fast path of an encoder layer, compute with the weights of what they do not call.
            own = {got.path for got in call.params}
            call.params += (got for got in self._params_below(module, call) if got.path not in own)
        if kwargs and not call.has_keywords:
            found = self._looks.tensors_in(kwargs, is_inner=call.parent is not None)
            call.inputs += [self._input(one, call) for one in found]
        before = {got.before[0]: got.before for got in call.inputs if got.before[0] is not None}
        for path, tensor, is_in_object, note in self._looks.tensors_in(result, is_inner=call.parent is not None):
            if tensor is None:
                call.outputs.append(Got(path, not_looked_into(note), None, "new"))
                continue
            seen = self.tensors.seen(tensor, maker=call.index, has_sample=self._has_samples)
            gave = Got(path, seen, None, _relation(tensor, before), is_in_object=is_in_object)
            if call.is_kept:
                gave.tensor = self.kept.copied(tensor, seen)
            call.outputs.append(gave)
            if call.module.is_activation and call.units is None:
                both, made_by = (call.module, self._giver(call)), self._class_before(call)
                call.zero_units, call.units = self.units.take(
                    tensor, seen, both, call.module.class_name, made_by, call.phase
                )
            if self._has_grads:
                self.gradients.of_value(tensor, seen)
        if call.parent is None and call.has_grads:
            self._await_others(call)

    def _giver(self, call: Call) -> Module | None:
        """Return the module whose result a call got first."""
        maker = call.inputs[0].seen.maker if call.inputs else None
        return self.calls[maker].module if maker is not None and maker < call.index else None

    def _class_before(self, call: Call) -> str:
        """Return the class of the module whose result an activation got; those that keep all axes have no say."""
        while call.inputs and (maker := call.inputs[0].seen.maker) is not None and maker < call.index:
            call = self.calls[maker]
            if not (call.module.is_activation or call.module.class_name == "Dropout"):
                return call.module.class_name
        return ""

    def _await_others(self, call: Call) -> None:
        """Have the parameters of modules that a model did not call tell what comes, if it has computed with them."""
        others = [
            (known, name, tensor)
            for known, name, tensor in self.known_parameters()
            if known.root == call.module.root and not known.num_calls and tensor.requires_grad
        ]
        own = {id(tensor) for tensor in self._own()} if others else ()
        for known, name, tensor in others:
            if id(tensor) not in own and not isinstance(tensor, UninitializedTensorMixin):
                self.gradients.of_parameter(tensor, name, self.tensors.unread(tensor), call, known)
        call.edges.clear()

    @never_compiled
    def _came_back(self, seen: Seen, number: int, grads: tuple[Any, ...]) -> None:
        if self.is_over or number >= len(grads) or not is_tensor(grads[number]):
            return
        with self.lock:
            with modes.outside_modes():
                read = None if self.is_over else self.tensors.read(grads[number])
            if read is not None:
                self._in_backward(seen)
                seen.gradients.append((self.num_gradients, *read))
                if torch.is_grad_enabled():
                    self.of_kept_graphs.add(self.num_gradients)
                self.num_gradients += 1

    def _in_backward(self, seen: Seen) -> None:
        """Note where a backward begins among the gradients; one inside it, or beside it in time, is a part of it."""
        # Torch numbers them as they begin.
        task = _graph_task() if _graph_task is not None else 0
        maker = self.calls[seen.maker] if seen.maker is not None else None
        place = bisect_left(self._last_tasks, maker.task if maker is not None and maker.phase == RECOMPUTED else task)
        if place == len(self.backwards):
            self.backwards.append(self.num_gradients)
        del self.backwards[place + 1 :]
        self._last_tasks[place:] = [max([task, *self._last_tasks[place:]])]

    @never_compiled
    def _is_to_be_added(self, one: AwaitedParameter) -> None:
        """Look at what a parameter holds to which a gradient is about to be added."""
        if self.is_over or not self.held.is_asked_for(one.place):
            return
        try:
            with self.lock, modes.outside_modes():
                self.held.look(one)
        except Exception as error:
            self.problems.append(told("what .grad held", error))

    def known_parameters(self) -> Iterator[tuple[Module, str, torch.Tensor]]:
        """Yield the parameters that the modules which are known hold now, each with its name there."""
        for known in list(self._modules.values()):
            module = known.reference()
            parameters = module.__dict__.get("_parameters", {}) if module is not None else {}
            yield from ((known, name, tensor) for name, tensor in parameters.items() if tensor is not None)

    def _own(self) -> Iterator[torch.Tensor]:
        """Yield the parameters with which modules that were called compute."""
        for known in self._modules.values():
            module = known.reference() if known.num_calls else None
            own = _own_parameters(module) if module is not None else ()
            yield from (tensor for _, tensor in own if tensor is not None)

    def forget_parameters(self, tensors: Iterable[torch.Tensor]) -> None:
        """Have these, and what calls hold, be read when next seen: fused steps and sharding write without counting."""
        if self.operations and self.only is None and not self.is_bound:
            # Each write was seen, and by whom.
            return
        self.tensors.forget_storages((*self._held, *(storage_key(tensor) or -1 for tensor in tensors)))
        self._held.clear()

    def look_at_gradients(self) -> None:
        """Read those that no node brings, and see which parameters have one that nobody has awaited."""
        known = ((place_of(module, name), tensor) for module, name, tensor in self.known_parameters())
        with modes.outside_modes(), self.lock:
            self.sharded.look(known, self.gradients.parameters)
            if self.num_gradients:
                self._not_called.look(self._modules.values(), self.gradients)

    def end(self) -> None:
        """Forget all that leads to the user's objects."""
        if self._is_ended:
            return
        try:
            self.look_at_gradients()
            self.not_called = list(self._not_called.parameters(self._modules.values(), self._own(), self.gradients))
            self.not_looked_at = [one for one in self._not_called.reached.values() if not one[0].num_calls]
        except Exception as error:
            self.problems.append(told("gradients that are kept", error))
        self.is_over = True
        with self.lock:
            self.tensors.end()
            self.at_begin.end()
            self.gradients.end()
            for call in self.calls:
                call.edges.clear()
            self._stacks.clear()
            self._seen_names = dict
        self._is_ended = True


def _own_parameters(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor | None]]:
    """Yield the parameters of a module, and of those in it that are never called: it computes with these itself."""
    for name, tensor in module.__dict__.get("_parameters", {}).items():
        yield prefix + name, tensor
    for name, child in module.__dict__.get("_modules", {}).items():
        if isinstance(child, _NEVER_CALLED) or (name == "out_proj" and isinstance(module, torch.nn.MultiheadAttention)):
            yield from _own_parameters(child, f"{prefix}{name}.")


_NEVER_CALLED = (torch.nn.ParameterList, torch.nn.ParameterDict)


def _is_functional(frame: FrameType) -> bool:
    """Return whether the frame that calls a module is called by a functional call, with parameters of its own."""
    outer = frame.f_back
    while outer is not None and outer.f_code.co_name in _CALLS:
        outer = outer.f_back
    return outer is not None and outer.f_code is _functional_code


def _own_hooks(module: torch.nn.Module) -> Iterator[str]:
    """Yield what hooks of the user's may change that is not seen: those for all modules run before these."""
    for table, noun in (("_forward_pre_hooks", PRE_HOOKS), ("_forward_hooks", HOOKS)):
        if count := len(module.__dict__.get(table) or ()):
            yield f"{counted(count, 'hook')} of its own {noun}"


def _is_made_by_compiler(module: torch.nn.Module) -> bool:
    """Return whether a compiler has made the module, and calls it."""
    if "torch._dynamo" not in sys.modules or type(module).__name__ != "GraphModule":
        return False
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        if any(part in frame.f_code.co_filename.replace(os.sep, "/") for part in _COMPILERS):
            return True
        frame = frame.f_back
    return False


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
