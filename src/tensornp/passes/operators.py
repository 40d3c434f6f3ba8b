"""Record the operators that a thread calls, with their inputs and results.

A dispatch mode sees composite operators in their parts, the casts of autocast and the whole backward, and calls each
of them once, with unchanged arguments. Never a function mode, under which encoder layers leave their fast path.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import increment_version
from torch.utils._python_dispatch import TorchDispatchMode

import tensornp
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.torch_private import inside_transforms, pop_dispatch_mode, push_dispatch_mode
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.passes.readable import is_ordinary
from tensornp.passes.records import BACKWARD, FORWARD, OPERATOR, OPTIMIZER, RAISED, RECOMPUTED, RETURNED, Call

graph_task: Any = torch._C._current_graph_task_id
_node_at_work: Any = torch._C._current_autograd_node
_next_number: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
_num_modes: Any = torch._C._len_torch_dispatch_stack
_mode_at: Any = torch._C._get_dispatch_stack_at
_BACKWARD = re.compile(r"Backwards?\d*$")
_OVERWRITING = frozenset(
    "fill_ zero_ copy_ normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_".split()
)
"""Operators that write a tensor without reading it."""
_LIBRARIES = tuple(os.path.join(os.path.dirname(one.__file__ or ""), "") for one in (torch, tensornp))
_Given = list[tuple[str, str, torch.Tensor]]
_SOFTMAX = frozenset(("_softmax", "_log_softmax", "_safe_softmax"))


class _Kind:
    """Facts from the schema of an operator: the names of its arguments, and those that it writes."""

    def __init__(self, func: Any) -> None:
        schema = func._schema
        space, _, name = schema.name.partition("::")
        self.name: str = name if space in ("aten", "prims") else f"{space}.{name}"
        self.arguments: list[str] = [one.name for one in schema.arguments]
        written = [one for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
        self.written: list[str] = [one.name for one in written]
        self.unread = frozenset(one.name for one in written if one.kwarg_only or name in _OVERWRITING)
        is_alias = not written and any(one.alias_info is not None for one in schema.returns)
        self.is_view = is_alias or name in ("lift_fresh", "_unsafe_view")
        self.is_empty = name.startswith(("empty", "new_empty", "_empty")) or name == "set_"
        self.reads = not (name.startswith("new_") or name.endswith("_like"))
        # Operators on lists have counted their writes, or never do.
        self.is_counted = not name.startswith(("_foreach_", "_fused_"))


class OperatorMode(TorchDispatchMode):
    """The mode that reports the operators of its thread; compiled code is seen as its operators."""

    supports_higher_order_operators = True

    def __init__(self, recorder: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._recorder = recorder
        # A view is no call, but has a node: its name, parent and source.
        self._by_number: dict[int, Call | tuple[str, int | None, Any] | None] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # It would bring the whole compiler with the first operator; `never_compiled` says the same.
        return False

    def is_on(self) -> bool:
        return any(_mode_at(i) is self for i in range(_num_modes()))

    def remove(self) -> None:
        """Leave the mode, if it is on, under others that were entered later, too."""
        with ExitStack() as later:
            while self.is_on() and (one := pop_dispatch_mode(None)) is not self:
                later.callback(push_dispatch_mode, one)

    def enter(self) -> int:
        """Enter the mode if it is not on; return the number of the next node."""
        number = int(_next_number())
        if not self.is_on():
            # Operators that were not seen may have made the node before.
            self._by_number.setdefault(number - 1, None)
            push_dispatch_mode(self)
        return number

    def follow_nodes(self, results: Iterable[torch.Tensor | None], first: int) -> None:
        """Have the mode on while nodes run that were made from `first` on and lead to some results."""
        waiting = [inside_transforms(tensor)[0].grad_fn for tensor in results if tensor is not None]
        seen: set[Any] = set()
        while waiting:
            node = waiting.pop()
            # Nodes of parameters have the greatest number.
            if node is not None and node not in seen and first <= node._sequence_nr() < _next_number():
                seen.add(node)
                self._recorder.exits.callback(node.register_prehook(self._enter_node).remove)
                waiting += [below for below, _ in node.next_functions]

    @never_compiled
    def _enter_node(self, grads: Any) -> None:
        # After each node, torch has the modes again in which the backward was called.
        number = self.enter()
        if torch.is_grad_enabled():
            handle = _node_at_work().register_hook(lambda made, _: self.follow_nodes(made, number))
            self._recorder.exits.callback(handle.remove)

    @never_compiled
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        __tracebackhide__ = True
        call, kind, kwargs = None, _kind_of(func), kwargs or {}
        # A view is no call, but without a gradient it has no node either.
        is_needed = kind is not None and (not kind.is_view or torch.is_grad_enabled())
        if kind is not None and is_needed and self._recorder.follows_here():
            try:
                call = self._placed(kind, sys._getframe(1))
            except Exception as error:
                self._recorder.problems.append(told("an operator of a pass", error))
        if call is None or kind is None:
            result = func(*args, **kwargs)
            _count_writes(kind, args, kwargs)
            return result
        given = _given(kind, args, kwargs)
        if kind.written:
            self._recorder.record(self._take_inputs, call, kind, args, kwargs, given)
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            call.status, call.error = RAISED, error_text(error)
            if not kind.written:
                self._recorder.record(self._take_inputs, call, kind, args, kwargs, given)
            self._recorder.record(self._recorder.add_operator, call)
            raise
        _count_writes(kind, args, kwargs)
        self._recorder.record(self._ended, call, kind, args, kwargs, given, result)
        return result

    def _placed(self, kind: _Kind, frame: Any) -> Call | None:
        """Return an operator in its place, in the backward that of its forward; None if it is no call."""
        recorder = self._recorder
        inner, is_backward = recorder.innermost(), graph_task() != -1
        is_recomputed = inner is not None and inner.call.phase == RECOMPUTED
        node = _node_at_work() if is_backward and not is_recomputed else None
        made: Call | tuple[str, int | None, Any] | None = None
        if node is not None:
            made = self._of_node(kind, node)
        elif recorder.only is None or (inner is not None and inner.is_within):
            parent, source = inner.call.index if inner is not None else 0, place_of(frame, inner)
            if kind.is_view:
                made = kind.name, parent, source
            else:
                # A step of an optimizer runs without gradients, and its closure with them.
                is_step = recorder.open_steps and not torch.is_grad_enabled()
                phase = RECOMPUTED if is_backward else OPTIMIZER if is_step else FORWARD
                made = Call(-1, OPERATOR, kind.name, parent=parent, source=source, phase=phase)
        # The first of several operators with the same number has made the node.
        self._by_number.setdefault(_next_number() - 1, made)
        return made if isinstance(made, Call) and not kind.is_view else None

    def _of_node(self, kind: _Kind, node: Any) -> Call | None:
        """Return an operator of a backward: sequence numbers, in one thread, lead from a node to its operator."""
        name, number = type(node).__name__, node._sequence_nr()
        found = None if len(self._recorder.stacks) > 1 else self._by_number.get(number)
        if self._recorder.only is not None and found is None:
            return None
        call = Call(-1, OPERATOR, kind.name, parent=0, phase=BACKWARD, detail=name)
        if found is None:
            return call
        forward, parent, source = (found.name, found.parent, found.source) if isinstance(found, Call) else found
        is_own = _is_node_of(name, forward)
        # A function of the user's has the number of the first operator in it.
        if is_own or not name[-1:].isdecimal():
            call.parent, call.source = parent, source
        if is_own and isinstance(found, Call) and found.index >= 0:
            call.forward, call.detail = found.index, ""
        return call

    def _take_inputs(self, call: Call, kind: _Kind, args: Any, kwargs: Any, given: _Given) -> None:
        tensors = self._recorder.tensors
        for one in (*args, *kwargs.values()):
            if type(one) is float and not math.isfinite(one):
                call.asked_for = "NaN" if math.isnan(one) else "Inf"
        if kind.reads:
            for argument, path, tensor in given:
                if argument not in kind.unread:
                    call.inputs[path] = tensors.value(tensor, has_sums=False)
            if kind.name in _SOFTMAX and is_ordinary(args[0]) and args[0].dim() and args[0].numel():
                # Rows that are -Inf throughout, counted on their own device.
                count = (args[0].amax(args[1]) == -math.inf).sum(dtype=torch.float32)
                self._recorder.masked_rows.append((call, tensors.table.add(count)))
        if kind.written:
            before = (tensors.before_write(tensor) for argument, _, tensor in given if argument in kind.written)
            call.overwrote = tuple(value for value in before if value is not None)

    def _ended(self, call: Call, kind: _Kind, args: Any, kwargs: Any, given: _Given, result: Any) -> None:
        recorder = self._recorder
        tensors = recorder.tensors
        if kind.is_empty:
            for _, tensor in _tensors_in("", result):
                # Nothing was written to it yet.
                tensors.memory(tensor.untyped_storage())
            return
        index = len(recorder.calls)
        if kind.written:
            for argument, path, tensor in given:
                if argument in kind.written:
                    call.outputs[path] = tensors.written(tensor, index, is_counted=kind.is_counted)
        else:
            # Results in memory that was seen before are views, whatever the schema says.
            new = [(path, tensor) for path, tensor in _tensors_in("", result) if not tensors.is_known(tensor)]
            if not new:
                return
            self._take_inputs(call, kind, args, kwargs, given)
            for path, tensor in new:
                call.outputs[path] = tensors.value(tensor, index, has_sums=False)
        call.status = RETURNED
        recorder.add_operator(call)


def _count_writes(kind: _Kind | None, args: Any, kwargs: Any) -> None:
    """Count the writes of an operator on lists of tensors: torch counts none under a mode."""
    if kind is None or not kind.written or not kind.name.startswith("_foreach_") or _num_modes():
        return
    for argument, _, tensor in _given(kind, args, kwargs):
        if argument in kind.written and not tensor.is_inference():
            increment_version(tensor)


def place_of(frame: FrameType | None, inner: Any = None) -> Any:
    """Return file and number of the innermost line outside of torch and tensornp."""
    while frame is not None:
        if inner is not None and inner.frame == id(frame):
            # From here on, the innermost module has looked for its own line already.
            return inner.call.source
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


@functools.lru_cache(4096)
def _is_node_of(node: str, operator: str) -> bool:
    """Return whether a node of the graph is that of an operator: ``SqrtBackward0`` of ``sqrt``."""
    made, name = (one.replace("_", "").lower() for one in (_BACKWARD.sub("", node), operator))
    return bool(made) and (made.startswith(name) or name.startswith(made))


@functools.lru_cache(4096)
def _kind_of(func: Any) -> _Kind | None:
    """Return facts about an operator; None for those without a schema or without a tensor as result."""
    schema = getattr(func, "_schema", None)
    if schema is None or (not any("Tensor" in str(one.type) for one in schema.returns) and not schema.is_mutable):
        return None
    return _Kind(func)


def _given(kind: _Kind, args: Any, kwargs: Any) -> _Given:
    """Return the tensors in arguments, each with the name of its argument and its path."""
    named = (*zip(kind.arguments, args, strict=False), *kwargs.items())
    return [(name, path, tensor) for name, one in named for path, tensor in _tensors_in(name, one)]


def _tensors_in(path: str, given: Any) -> list[tuple[str, torch.Tensor]]:
    if is_tensor(given):
        return [(path, given)]
    if type(given) not in (list, tuple):
        return []
    return [(f"{path}[{i}]", one) for i, one in enumerate(given) if is_tensor(one)]
