"""The operators that a thread calls, each with what it read and gave: a dispatch mode, through which all of them pass.

It sees composite operators in their parts, the casts of autocast and the whole backward, and calls each of them once,
with what it was called with. Never a function mode, under which encoder layers leave their fast path.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import increment_version
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_tensor
from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.passes.recording.recorder import Recorder
from tensornp.passes.recording.remembered import Call
from tensornp.passes.recording.seen_tensors import Seen
from tensornp.passes.records import BACKWARD, FORWARD, RAISED, RECOMPUTED, RETURNED

_graph_task: Any = torch._C._current_graph_task_id
_node_at_work: Any = torch._C._current_autograd_node
_next_number: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
_stack: Any = torch.utils._python_dispatch._get_current_dispatch_mode_stack
_push: Any = torch._C._push_on_torch_dispatch_stack
_pop: Any = torch._C._pop_torch_dispatch_stack
_tell_compiler = getattr(torch.utils._python_dispatch, "set_is_in_mode_without_ignore_compile_internals", None)
_FLAGS = (
    "_is_in_torch_dispatch_mode",
    "_is_in_non_infra_torch_dispatch_mode",
    "_is_in_any_mode_without_ignore_compile_internals",
)
"""What torch notes of its modes as one is entered."""
_num_modes = torch._C._len_torch_dispatch_stack
_BACKWARD = re.compile(r"Backwards?\d*$")
_OVERWRITING = frozenset(
    "fill_ zero_ copy_ normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_".split()
)
"""What writes a tensor without reading it."""
_READ_OUT = torch.ops.aten._local_scalar_dense.default
"""What `item` comes to."""
_SOFTMAX = frozenset(("_softmax", "_log_softmax", "_safe_softmax"))


class _Kind(NamedTuple):
    """What is known of an operator by its schema: whether it reads values, and which arguments it writes."""

    name: str
    is_view: bool
    is_empty: bool
    reads: bool
    reads_written: bool
    written: tuple[tuple[int, str, bool], ...]

    @property
    def is_counted(self) -> bool:
        """Whether torch counts its writes as it returns: what writes lists of tensors has been counted, or never is."""
        return not self.name.startswith(("_foreach_", "_fused_"))


class Operation:
    """An operator that was called."""

    __slots__ = (
        "asks", "call", "error", "forward", "index", "inputs", "masked", "name", "node", "outputs", "overwrote",
        "phase", "source", "status",
    )  # fmt: skip

    def __init__(self, name: str, call: Call | None, phase: str, source: tuple[CodeType, int] | None) -> None:
        self.index, self.name, self.call, self.phase, self.source = -1, name, call, phase, source
        self.status, self.error, self.node, self.asks = RETURNED, "", "", ""
        self.forward: Operation | None = None
        self.masked: tuple[int, int] | None = None
        self.inputs: tuple[Seen, ...] = ()
        self.outputs: tuple[Seen, ...] = ()
        self.overwrote: tuple[Seen, ...] = ()


class OperatorMode(TorchDispatchMode):
    """The mode by which one recorder learns of the operators of the thread that has entered it.

    Compiled code stays compiled under it, where this torch can do that, and is seen as what it calls.
    """

    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder, is_followed: Callable[[], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._recorder, self._is_followed = recorder, is_followed
        self._is_choosy = recorder.only is not None or recorder.is_bound
        self._by_number: dict[int, Operation | None] = {}
        self._others: dict[Operation, int] = {}
        self._flags: dict[str, bool] = {}
        self._later: Iterator[Any] = iter(())

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return that compiled code is not to be run eagerly for our sake."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # It would bring the whole compiler with the first operator; `never_compiled` says the same.
        return False

    def enter(self) -> None:
        """Begin."""
        self._flags = {name: getattr(_python_dispatch, name) for name in _FLAGS if hasattr(_python_dispatch, name)}
        self.__enter__()  # type: ignore[no-untyped-call]

    def remove(self) -> None:
        """End, whatever mode was entered since and is active still; once more, where this was interrupted."""
        if not (_stack and _push and _pop):
            if self._flags:
                self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._flags = {}
            return
        if self in (active := _stack()):
            later = [one for one in active[active.index(self) :] if getattr(one, "_mode_key", None) is None]
            self._later = iter(later[1:])
            # All of them by one call of C, and so back again: Ctrl-C comes before or after it.
            list(map(_pop, [None] * len(later)))
        list(map(_push, self._later))
        # Not by torch's own way, which could be interrupted on it.
        for name, value in self._flags.items():
            setattr(_python_dispatch, name, value)
        if _tell_compiler is not None and _FLAGS[-1] in self._flags:
            _tell_compiler(self._flags[_FLAGS[-1]])

    @never_compiled
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and take in what it read and gave."""
        __tracebackhide__ = True
        kwargs = kwargs or {}
        if func is _READ_OUT:
            self._recorder.tensors.read_out(args[0])
        operation, kind = None, _kind_of(func)
        is_elsewhere = kind is None or (self._is_choosy and self._is_elsewhere())
        if not is_elsewhere and kind is not None and self._recorder.is_at_work and self._is_followed():
            operation = self._began(kind, args, kwargs, sys._getframe(1))
        if operation is None or kind is None:
            result = func(*args, **kwargs)
            _count_writes(kind, args, kwargs)
            return result
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            operation.status, operation.error = RAISED, error_text(error)
            operation.index = len(self._recorder.operations)
            self._recorder.operations.append(operation)
            raise
        _count_writes(kind, args, kwargs)
        self._ended(operation, kind, args, kwargs, result)
        return result

    def _is_elsewhere(self) -> bool:
        """Return whether what is called now is surely in no call whose operators are followed, nor in its backward."""
        recorder = self._recorder
        call, node = recorder.innermost(), None
        if _graph_task is not None and _graph_task() != -1 and (call is None or call.phase != RECOMPUTED):
            node = _node_at_work() if _node_at_work else None
        if node is None:
            is_elsewhere = call is None or (recorder.only is not None and not call.is_within)
        else:
            is_elsewhere = self._by_number.get(node._sequence_nr()) is None
        if is_elsewhere and _next_number is not None:
            self._by_number.setdefault(_next_number() - 1, None)
        return is_elsewhere

    def _began(self, kind: _Kind, args: Any, kwargs: Any, frame: Any) -> Operation | None:
        recorder = self._recorder
        try:
            with modes.outside_modes(), recorder.lock:
                call = recorder.innermost()
                operation = self._placed(kind, call, frame, args, kwargs)
                if operation.call is None and (recorder.is_bound or recorder.only is not None):
                    return None
                if recorder.only is not None and operation.call is not None and not operation.call.is_within:
                    return None
                if kind.is_view or kind.is_empty:
                    return operation if kind.is_empty else None
                self._take_inputs(operation, kind, args, kwargs)
                return operation
        except Exception as error:
            recorder.problems.append(told("an operator of a pass", error))
            return None

    def _placed(self, kind: _Kind, call: Call | None, frame: Any, args: Any, kwargs: Any) -> Operation:
        """Return an operator with the place that it has in the program: in the backward, that of its forward."""
        node = _node_at_work() if _node_at_work and _graph_task and _graph_task() != -1 else None
        if node is None or (call is not None and call.phase == RECOMPUTED):
            phase = FORWARD if node is None else RECOMPUTED
            operation = Operation(kind.name, call, phase, self._recorder.lines.place_of(frame))
        else:
            name = type(node).__name__
            number = node._sequence_nr()
            forward = self._by_number.get(number)
            is_another_s = forward is not None and self._is_another_s(forward, number, args, kwargs)
            forward = None if is_another_s else forward
            is_own = forward is not None and _is_node_of(name, forward.name)
            # A function of the user's bears the number of the first operator in it.
            is_near = forward is not None and (is_own or not name[-1:].isdecimal())
            call, source = (forward.call, forward.source) if forward is not None and is_near else (None, None)
            operation = Operation(kind.name, call, BACKWARD, source)
            operation.forward, operation.node = forward if is_own else None, name
            if is_another_s:
                self._others[operation] = number
        if _next_number is not None:
            # Of several that have seen the same number, the first was given it.
            self._by_number.setdefault(_next_number() - 1, operation)
        return operation

    def _is_another_s(self, forward: Operation, number: int, args: Any, kwargs: Any) -> bool:
        """Return whether a backward may be that of another thread's forward, which bears the same number as `forward`.

        Each thread counts by itself. What a backward reads was made by operators of this thread, or given to them; one
        that reads what `forward` has read or given is its own, and what goes on with another's is that one's.
        """
        recorder, own = self._recorder, forward.inputs + forward.outputs
        known = []
        for tensor in _tensors(args, kwargs):
            seen = recorder.tensors.seen_beside(tensor)
            if seen is None or not tensor.dim():
                continue
            if any(one in own for one in seen):
                return False
            known.append(seen)
        makers = {one.operator for seen in known for one in seen if one.operator is not None} if self._others else ()
        if any(self._others.get(recorder.operations[one]) == number for one in makers):
            return True
        has_all = not recorder.is_bound and recorder.only is None
        return recorder.has_threads or (has_all and not all(known))

    def _take_inputs(self, operation: Operation, kind: _Kind, args: Any, kwargs: Any) -> None:
        tensors, glanced = self._recorder.tensors, self._recorder.tensors.glanced
        written = [_written(args, kwargs, *one) for one in kind.written]
        unread = {id(tensor) for one in written for tensor in one} if not kind.reads_written else set()
        unread |= {
            id(tensor) for (_, _, is_out), one in zip(kind.written, written, strict=True) if is_out for tensor in one
        }
        operation.asks = _asked_for(args, kwargs)
        if kind.reads:
            read = [one for one in _tensors(args, kwargs) if id(one) not in unread]
            operation.inputs = tuple(map(glanced, read))
            if kind.name in _SOFTMAX and read:
                operation.masked = self._masked_rows(read[0], args)
        operation.overwrote = tuple(
            seen for one in written for tensor in one if (seen := tensors.before_write(tensor)) is not None
        )

    def _masked_rows(self, tensor: torch.Tensor, args: Any) -> tuple[int, int] | None:
        """Have the rows counted that are −Inf throughout; return the number of that count, and the number of rows."""
        if tensor.dim() == 0 or not tensor.numel() or type(args[1]) is not int or tensor.is_meta:
            return None
        most = tensor.amax(args[1])
        count = (most == -math.inf).sum(dtype=torch.float32)
        return self._recorder.tensors.table.add(count, has_sums=False), most.numel()

    def _ended(self, operation: Operation, kind: _Kind, args: Any, kwargs: Any, result: Any) -> None:
        recorder = self._recorder
        tensors = recorder.tensors
        try:
            with modes.outside_modes(), recorder.lock:
                if kind.is_empty:
                    for tensor in _in_result(result):
                        tensors.allocated(tensor)
                    return
                index = len(recorder.operations)
                if kind.written:
                    wrote = [tensor for one in kind.written for tensor in _written(args, kwargs, *one)]
                    outputs = [tensors.written(tensor, index, is_counted=kind.is_counted) for tensor in wrote]
                else:
                    # What shares memory that was seen before is a view, whatever the schema says.
                    new = [tensor for tensor in _in_result(result) if not tensors.is_known(tensor)]
                    outputs = [tensors.glanced(tensor, index) for tensor in new]
                if outputs:
                    operation.index, operation.outputs = index, tuple(outputs)
                    recorder.operations.append(operation)
        except Exception as error:
            recorder.problems.append(told("an operator of a pass", error))


def _count_writes(kind: _Kind | None, args: Any, kwargs: Any) -> None:
    """Count the writes of an operator on lists of tensors, as torch does where there is no mode, and not under one."""
    if kind is None or not kind.written or not kind.name.startswith("_foreach_") or _num_modes is None or _num_modes():
        return
    for one in kind.written:
        for tensor in _written(args, kwargs, *one):
            if not tensor.is_inference():
                increment_version(tensor)


@functools.lru_cache(4096)
def _is_node_of(node: str, operator: str) -> bool:
    """Return whether a node of the graph is that of an operator: ``SqrtBackward0`` of ``sqrt``."""
    made, name = (one.replace("_", "").lower() for one in (_BACKWARD.sub("", node), operator))
    return bool(made) and (made.startswith(name) or name.startswith(made))


@functools.lru_cache(4096)
def _kind_of(func: Any) -> _Kind | None:
    """Return what the schema of an operator tells; None of what gives no tensor, or has no schema."""
    schema = getattr(func, "_schema", None)
    if schema is None or (not any("Tensor" in str(one.type) for one in schema.returns) and not schema.is_mutable):
        return None
    space, _, name = schema.name.partition("::")
    written = tuple(
        (-1 if one.kwarg_only else place, one.name, one.kwarg_only)
        for place, one in enumerate(schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    )
    is_view = not written and any(one.alias_info is not None for one in schema.returns)
    is_like = name.startswith("new_") or name.endswith("_like")
    return _Kind(
        name if space in ("aten", "prims") else f"{space}.{name}",
        is_view or name in ("lift_fresh", "_unsafe_view"),
        name.startswith(("empty", "new_empty", "_empty")),
        not is_like,
        name not in _OVERWRITING,
        written,
    )


def _written(args: Any, kwargs: Any, place: int, name: str, _is_out: bool) -> list[torch.Tensor]:
    """Return the tensors of an argument that is written."""
    given = args[place] if 0 <= place < len(args) else kwargs.get(name)
    return list(_in_result(given))


def _tensors(args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    for one in args:
        yield from _in_result(one)
    for one in kwargs.values():
        yield from _in_result(one)


def _in_result(given: Any) -> Iterable[torch.Tensor]:
    if is_tensor(given):
        return (given,)
    return [one for one in given if is_tensor(one)] if type(given) in (list, tuple) else ()


def _asked_for(args: Any, kwargs: Any) -> str:
    """Return "nan" or "inf" where a number says so that an operator was given, as a mask's is; else nothing."""
    for one in (*args, *kwargs.values()):
        if type(one) is float and not math.isfinite(one):
            return "nan" if math.isnan(one) else "inf"
    return ""


@functools.cache
def is_supported() -> bool:
    """Return whether this torch keeps compiled code compiled under the mode."""
    return hasattr(TorchDispatchMode, "ignore_compile_internals")
