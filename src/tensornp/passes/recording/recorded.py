"""From what was remembered to the record: names, figures and lines in the place of numbers and references."""

from __future__ import annotations

import difflib
import functools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import counted, legible, quoted
from tensornp.core.memory.digest import digest_of
from tensornp.core.namespace.caller import name_of
from tensornp.core.tensor.dtypes import name_of as name_of_dtype
from tensornp.core.tensor.paths import expression_of
from tensornp.passes.recording.asked_for import asked_for
from tensornp.passes.recording.attributes import look_at_attributes
from tensornp.passes.recording.distributed import FSDP, note_of_gradient, this_rank
from tensornp.passes.recording.gradients import AwaitedParameter, place_of
from tensornp.passes.recording.held_gradients import are_stepped_twice, held_before
from tensornp.passes.recording.operator_mode import Operation
from tensornp.passes.recording.optimizer_hooks import Step
from tensornp.passes.recording.recorder import Recorder
from tensornp.passes.recording.remembered import Call, Got, Module
from tensornp.passes.recording.row_table import Row, RowTable
from tensornp.passes.recording.scalers import Scalers
from tensornp.passes.recording.seen_tensors import EXPANDED, Seen
from tensornp.passes.recording.sharded_gradients import NOTE, UNSEEN
from tensornp.passes.recording.source_lines import line_at
from tensornp.passes.records import (
    CAME_WITH_THE_CALL,
    COMPILED,
    HELD,
    IN_ITS_PLACE,
    IN_PLACE,
    NOT_CALLED,
    NOT_SEEN,
    OF_KEPT_GRAPH,
    UNCOUNTED,
    UNSET,
    WARNED,
    Figures,
    Gradient,
    ModuleCall,
    OperatorCall,
    OptimizerStep,
    PassRecord,
    Value,
    ZeroUnits,
)
from tensornp.passes.verdict.bounded import bounded
from tensornp.passes.verdict.wording import listed


@outside_modes
def remembered(
    recorder: Recorder,
    steps: Sequence[Step],
    scalers: Scalers,
    namespace: Mapping[str, Any],
    error: BaseException | None,
    max_calls: int,
) -> Callable[[], PassRecord]:
    """Return what makes the record of a pass that is over, when it is first read; the names are those of `namespace`.

    What may be another one by then is asked for now, and held is nothing that leads to the user's objects.
    """
    recorder.units.end()
    rows, samples = recorder.tensors.table.read()
    if not all(math.isfinite(row.min + row.max) for row in rows):
        _leave_out_unset(recorder.calls, rows)
        _look_again(recorder, rows)
        rows = [*rows, *look_at_attributes(recorder, rows)]
    making = _Recording(recorder, namespace, rows, samples, steps)
    awaited = list(recorder.gradients.found(recorder.known_parameters()))
    facts = {
        "error": "" if error is None else error_text(error),
        "causes": tuple(_causes(error)),
        "results": tuple(_not_asked_for(recorder, making, namespace)),
    }
    recorder.tensors.clear()
    return outside_modes(functools.partial(_recorded, recorder, making, steps, scalers, awaited, facts, max_calls))


def _recorded(
    recorder: Recorder,
    making: _Recording,
    steps: Sequence[Step],
    scalers: Scalers,
    awaited: Sequence[tuple[AwaitedParameter, bool]],
    facts: Mapping[str, Any],
    max_calls: int,
) -> PassRecord:
    grads = (
        *(
            making.gradient(one.place, one.seen, one.module, is_own=is_own)
            for one, is_own in awaited
            if one.module.num_calls or one.seen.gradients
        ),
        *(Gradient(f"{making.name(module)}.{name}", None, note=NOT_CALLED) for module, name in recorder.not_called),
        *(Gradient(f"{making.name(module)}.{name}", None, note=HELD) for module, name in recorder.not_looked_at),
    )
    notes = [*recorder.problems, *recorder.kept.left_out(), *_unmatched(recorder, making), *_elsewhere(recorder)]
    if recorder.calls and recorder.compiled_since:
        notes.append(_compiled_since(recorder))
    record = PassRecord(
        tuple(map(making.call, recorder.calls)),
        grads,
        had_backward=recorder.num_gradients > 0,
        backwards=tuple(recorder.backwards),
        notes=tuple(dict.fromkeys(notes)),
        versions={"torch": torch.__version__},
        operators=tuple(map(making.operator, recorder.operations)),
        # Of modules that were given, what they call alone is followed.
        only="*" if recorder.is_bound and recorder.only is None else recorder.only,
        has_operators=recorder.has_operators,
        passed_by=making.passed_by(recorder),
        steps=tuple(map(making.step, steps)),
        scaling=scalers.recorded(making.rows),
        has_inference=recorder.has_inference,
        **facts,
    )
    return bounded(record, max_calls)


def _not_asked_for(recorder: Recorder, making: _Recording, namespace: Mapping[str, Any]) -> Iterator[Value]:
    """Yield what the block has bound to names, but for what is NaN or Inf since it was to be that, or is a mask."""
    results = [replace(making.value(Got(None, seen)), path=name) for name, seen in recorder.results]
    codes = {call.source[0]: None for call in recorder.calls if call.parent is None and call.source is not None}
    numbers, masks = (
        asked_for((*codes, *recorder.codes), namespace)
        if any(one.is_finite is False for one in results)
        else (frozenset(), frozenset())
    )
    for one in results:
        is_mask = one.figures is not None and math.isfinite(one.figures.min) is not math.isfinite(one.figures.max)
        if not (is_mask and one.path in masks) and (one.requires_grad or one.path not in numbers):
            yield one


def _unmatched(recorder: Recorder, making: _Recording) -> Iterator[str]:
    """Yield which pattern has matched no call, with the closest name."""
    modules = list({id(call.module): call.module for call in recorder.calls}.values())
    names = list(dict.fromkeys(name for one in modules for name in (making.title(one), making.code(one)) if name))
    for option, pattern, has_matched in (
        ("only", recorder.only, any(call.is_within for call in recorder.calls)),
        ("keep", recorder.keep, any(call.is_kept for call in recorder.calls)),
    ):
        if pattern is not None and not has_matched:
            if pattern in names:
                yield f"{option}={quoted(pattern)} is a name that was bound after what it names had been called"
                continue
            closest = difflib.get_close_matches(pattern, names, 1, 0)
            hint = f"; the closest name is {quoted(closest[0])}" if closest else ""
            yield f"{option}={quoted(pattern)} matches no module that was called{hint}"


def _elsewhere(recorder: Recorder) -> Iterator[str]:
    """Yield that a mode of torch belongs to one thread, where calls came from others."""
    if recorder.has_operators and any(call.thread != recorder.thread for call in recorder.calls):
        yield "operators of other threads were not followed"


def _compiled_since(recorder: Recorder) -> str:
    """Return that modules may have been called of which nothing tells."""
    told = listed(recorder.compiled_since)
    return f"calls of what Module.compile has compiled inside the block were not followed ({told}): compile before it"


def _leave_out_unset(calls: Iterable[Call], rows: Sequence[Row]) -> None:
    """Take the infinities of observers that have observed nothing yet for what they are: no figures."""
    for seen in (got.seen for call in calls if call.module.is_observer for got in call.params):
        if seen.row is not None and math.isinf(rows[seen.row].min) and rows[seen.row].min == rows[seen.row].max:
            seen.row, seen.note = None, UNSET


def _look_again(recorder: Recorder, rows: Sequence[Row]) -> None:
    """Note which weights are not finite that were so when they were read, although torch has counted no write."""
    table, read = RowTable(), []
    for module in {id(call.module): call.module for call in recorder.calls}.values():
        found = module.reference()
        for tensor in list(found.__dict__.get("_parameters", {}).values()) if found is not None else ():
            seen = recorder.tensors.before_write(tensor) if tensor is not None else None
            if seen is not None and seen.row is not None and math.isfinite(rows[seen.row].min + rows[seen.row].max):
                with suppress(Exception):
                    # Of a sharded one this rank's part: nothing here may ask another rank.
                    readable, _ = recorder.tensors.readable_of(tensor)
                    if readable is not None:
                        read.append((seen, table.add(readable, has_sums=False)))
    now, _ = table.read()
    for seen, row in read:
        if not math.isfinite(now[row].min + now[row].max):
            seen.note = UNCOUNTED


def _notes_of(call: Call) -> Iterator[str]:
    yield from call.notes
    if call.is_compiled:
        yield IN_PLACE
    elif call.module.class_name == COMPILED:
        yield WARNED


def _causes(error: BaseException | None) -> Iterator[str]:
    """Yield an error and those in whose handling it was raised, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error_text(error)
        error = error.__cause__ or error.__context__


def _told_apart(names: list[str]) -> list[str]:
    """Return names of models, a number behind those that stand there before; that of a single one may be empty."""
    counts: Counter[str] = Counter()
    told = []
    for name in names:
        counts[name] += 1
        told.append(f"{name} #{counts[name]}" if name and counts[name] > 1 else name)
    return told


class _Recording:
    """What the making of one record needs to know."""

    def __init__(
        self,
        recorder: Recorder,
        namespace: Mapping[str, Any],
        rows: Sequence[Row],
        samples: Sequence[np.ndarray[Any, Any]],
        steps: Sequence[Step],
    ) -> None:
        self.rows, self._num_taken = rows, [one.num_gradients + one.num_inside for one in steps]
        self._sample = functools.cache(lambda number: tuple(samples[number].tolist()))
        self._calls, self._held, self._sharded = recorder.calls, recorder.held.looks, recorder.sharded.rows
        self._zeros = frozenset({None, *(i for i, row in enumerate(rows) if row.min == row.max == 0)})
        self._steps: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
        self._numbers = {id(step): number for number, step in enumerate(steps)}
        self._awaited = recorder.gradients.parameters
        for number, step in enumerate(steps):
            for place in _places_of(step):
                # One that another makes inside its own is the same.
                if step.outer not in self._steps[place]:
                    self._steps[place].append(number)
        self._wrappers = {(call.module.root, call.module.name): call.module.wrapper for call in recorder.calls}
        self._glances: dict[int, Value] = {}
        kept = recorder.of_kept_graphs
        # Where all are of such a backward, it needs no word.
        self._of_kept_graphs = frozenset(kept) if len(kept) < recorder.num_gradients else frozenset()
        self._gradients: dict[int, tuple[Figures | None, tuple[int, ...]]] = {}
        inputs = namespace.get("In")
        inputs = [one for one in inputs if type(one) is str] if type(inputs) is list else []
        sources = {None, *(one.source for one in (*recorder.calls, *recorder.operations, *steps))}
        self._lines = {place: line_at(place, inputs) for place in sources}
        self._rank = this_rank()
        roots = [reference() for reference, _ in recorder.roots]
        self._codes = ["" if root is None else name_of(root, namespace) for root in roots]
        # A fast path calls no module that has some.
        with_weights = {call.module.root for call in self._calls if call.params}
        with_weights |= {module.root for module, _, _ in recorder.known_parameters()}
        # The names of one model are those of its weights; beside another one, and of what has none, its own name leads.
        names = [
            "" if {number} == with_weights else (code or name)
            for number, (code, (_, name)) in enumerate(zip(self._codes, recorder.roots, strict=True))
        ]
        self._prefixes = _told_apart(names)

        self._operations: list[Operation] = recorder.operations
        self._param_names = {
            id(got.seen): ".".join(filter(None, (self.name(call.module), expression_of(got.path))))
            # The first name of a tied one is that by which it was read first.
            for call in (reversed(self._calls) if self._operations else ())
            for got in call.params
        }

    def name(self, module: Module) -> str:
        """Return the name of a module, with that of its model where there are several."""
        return ".".join(filter(None, (self._prefixes[module.root], module.name)))

    def title(self, module: Module) -> str:
        """Return how a module is shown."""
        return self.name(module) or module.class_name

    def passed_by(self, recorder: Recorder) -> str:
        """Return why no call was followed, where modules were called."""
        if recorder.calls:
            return ""
        if recorder.compiled_since:
            return _compiled_since(recorder)
        if not recorder.has_others:
            return ""
        if not recorder.is_bound:
            return "no module was called here; what another thread or task calls is followed by name: tnp.follow(model)"
        names = zip(self._codes, recorder.roots, strict=True)
        told = listed([legible(code or name) for code, (_, name) in names])
        if recorder.has_compiled:
            return (
                f"{told} was called as compiled code alone: follow what torch.compile has returned, or name no module"
            )
        return f"{told} was not called here; other modules were"

    def code(self, module: Module) -> str:
        """Return the expression that reaches a module; empty where none is known."""
        root = self._codes[module.root]
        return root + module.code if root and module.code is not None else ""

    def call(self, call: Call) -> ModuleCall:
        """Return the record of one call."""
        return ModuleCall(
            call.index,
            self.name(call.module),
            call.module.class_name,
            self.code(call.module),
            call.nth,
            call.parent,
            call.depth,
            call.order,
            call.phase,
            call.status,
            call.error,
            self._lines[call.source],
            call.thread_name,
            tuple(map(self.value, call.inputs)),
            tuple(map(self.value, call.outputs)),
            self._weights_of(call),
            tuple(_notes_of(call)),
            call.module.is_torch,
            num_calls=call.module.num_calls,
            zero_units=self._zero_units(call.zero_units),
            zero_in_all=self._zero_units(call.units.count if call.units is not None else None),
            is_grad_enabled=call.is_grad_enabled,
            is_training=call.is_training,
            attributes=tuple(map(self.value, call.attributes)),
            num_gradients=call.num_gradients,
        )

    def _weights_of(self, call: Call) -> tuple[Value, ...]:
        values = map(self.value, call.params)
        if any(got.since for got in call.params) and self._wrapper_around(call.module) == FSDP:
            # It puts what it has gathered into their places, and takes it out again.
            return tuple(replace(one, since=NOT_SEEN) if one.since else one for one in values)
        return tuple(values)

    def step(self, step: Step) -> OptimizerStep:
        """Return the record of a step, with what it has spoilt, or changed though frozen, under each of its names."""
        read = [
            (".".join(filter(None, (self.name(module), name))), parameter.count, is_frozen, before, after)
            for parameter, is_frozen, *rows in step.rows()
            for before, after in [[self.rows[row] for row in rows]]
            if _is_finite(before) and ((is_frozen and before[:2] != after[:2]) or not _is_finite(after))
            for module, name in parameter.names
        ]
        spoilt = tuple((name, Figures(*after, count)) for name, count, _, _, after in read if not _is_finite(after))
        frozen = tuple(name for name, _, is_frozen, _, _ in read if is_frozen)
        source = self._lines[step.source]
        return OptimizerStep(
            step.class_name, step.num_calls, step.num_gradients, source, step.is_done, spoilt, frozen, step.num_inside,
            len(step.parameters), step.has_gradients, self._has_lost(step), self._mark_of(step),
        )  # fmt: skip

    def _has_lost(self, step: Step) -> bool:
        """Return whether gradients had come for a step since the one before it, and none was there when it began."""
        if step.has_gradients or step.num_inside:
            return False
        number, orders = self._numbers[id(step)], []
        for place in _places_of(step):
            taken = max((self._num_taken[one] for one in self._steps[place] if one < number), default=0)
            seen = self._awaited[place].seen if place in self._awaited else None
            orders += [order for order, _, _ in seen.gradients if taken <= order] if seen is not None else []
        return any(order < step.num_gradients for order in orders)

    def _mark_of(self, step: Step) -> bytes:
        ends = [(self.rows[after].min, self.rows[after].max) for *_, after in step.rows()]
        return digest_of(repr(ends).encode()) if len(ends) == len(step.parameters) > 0 else b""

    def _zero_units(self, count: tuple[int, int, int] | None) -> ZeroUnits | None:
        if count is None:
            return None
        row, *sizes = count
        return ZeroUnits(int(self.rows[row].max), *sizes)

    def value(self, got: Got) -> Value:
        """Return the record of what a call got or gave."""
        seen, (grad, orders) = got.seen, self.gradient_of(got.seen)
        maker, is_of_kept_graph = seen.maker, not self._of_kept_graphs.isdisjoint(orders[-1:])
        return Value(
            expression_of(got.path),
            seen.shape,
            name_of_dtype(seen.dtype) if seen.dtype is not None else "",
            str(seen.device),
            bool(seen.requires_grad),
            got.relation,
            CAME_WITH_THE_CALL if maker is None else self.title(self._calls[maker].module),
            maker,
            self.figures(seen.row, seen),
            self._sample(seen.sample) if seen.sample is not None else (),
            ", ".join(filter(None, (seen.note, OF_KEPT_GRAPH if is_of_kept_graph else ""))),
            grad,
            operator=seen.operator,
            tensor=got.tensor,
            is_in_object=got.is_in_object,
            since=got.since,
            grad_orders=orders,
        )

    def operator(self, one: Operation) -> OperatorCall:
        """Return the record of an operator."""
        return OperatorCall(
            one.index,
            one.name,
            one.call.index if one.call is not None else None,
            one.phase,
            one.status,
            one.error,
            one.node,
            one.forward.index if one.forward is not None and one.forward.index >= 0 else None,
            self._lines[one.source],
            tuple(map(self._glance, one.inputs)),
            tuple(map(self._glance, one.outputs)),
            tuple(map(self._glance, one.overwrote)),
            one.asks,
            any(seen.is_held for seen in one.outputs),
            tuple(self._masked(*one.masked)) if one.masked is not None else (),
        )

    def _masked(self, row: int, num_rows: int) -> Iterator[str]:
        count = int(self.rows[row].max)
        if count:
            yield f"{counted(count, 'row')} of its input {'was' if count == 1 else 'were'} −Inf throughout"

    def _glance(self, seen: Seen) -> Value:
        """Return the record of what an operator read or gave: one, wherever it is seen."""
        value = self._glances.get(id(seen))
        if value is None:
            value = self.value(Got(None, seen))
            if seen.operator is not None:
                made_by = self._operations[seen.operator].name
                value = replace(value, made_by=made_by, operator=seen.operator)
            elif id(seen) in self._param_names:
                value = replace(value, path=self._param_names[id(seen)])
            self._glances[id(seen)] = value
        return value

    def figures(self, row: int | None, seen: Seen) -> Figures | None:
        """Return the figures that were read; of an expanded tensor, those of all elements."""
        if row is None:
            numel = math.prod(seen.shape) if all(type(size) is int for size in seen.shape) else 1
            return Figures(math.nan, math.nan, 0.0, 0.0, 0) if not numel and seen.dtype is not None else None
        times = math.prod(seen.shape) / seen.count if seen.note.startswith(EXPANDED) and seen.count else 1.0
        return _figures(self.rows[row], times, round(seen.count * times))

    def gradient_of(self, seen: Seen) -> tuple[Figures | None, tuple[int, ...]]:
        """Return what came back: the first that is not finite, else the last, and when all up to that came."""
        known = self._gradients.get(id(seen))
        if known is None:
            known = self._gradients[id(seen)] = self._gradient_of(seen)
        return known

    def _gradient_of(self, seen: Seen) -> tuple[Figures | None, tuple[int, ...]]:
        rows = [self.rows[row] for _, row, _ in seen.gradients]
        if not rows:
            return None, ()
        orders, _, times = zip(*seen.gradients, strict=True)
        told = _first_odd(rows)
        return _figures(rows[told], times[told], seen.count or math.prod(seen.shape)), orders[: told + 1]

    def _first_odd(self, rows: Sequence[Row], seen: Seen) -> Figures | None:
        return Figures(*rows[_first_odd(rows)], seen.count or math.prod(seen.shape)) if rows else None

    def _wrapper_around(self, module: Module) -> str:
        """Return what brings together the gradients of a module, which may be one around it."""
        names = {self._wrappers.get((module.root, name)) for name in _around(module.name)}
        return next(filter(None, names), "")

    def gradient(self, place: tuple[int, str], seen: Seen, module: Module, *, is_own: bool) -> Gradient:
        """Return what came back for a parameter."""
        prefix, name = self._prefixes[module.root], place[1]
        looks, steps = self._held.get(place, []), self._steps.get(place, [])
        row = held_before(looks, steps, self._zeros)
        held = Figures(*self.rows[row], max(seen.count, 1)) if row is not None else None
        is_stepped_twice = are_stepped_twice(looks, steps, self._zeros)
        figures, orders = self.gradient_of(seen)
        note = seen.note if figures is None else note_of_gradient(self._wrapper_around(module), self._rank)
        note = note if is_own or figures is None else IN_ITS_PLACE
        kept = self._sharded.get(place)
        if figures is None and kept is not None:
            # Nobody has told when it came.
            figures = self._first_odd([self.rows[row] for row in kept], seen)
            note = NOTE.format(self._rank) if kept else UNSEEN
        num_backwards = self._num_backwards([one for one, _, _ in seen.gradients], place)
        full_name = ".".join(filter(None, (prefix, name)))
        return Gradient(full_name, figures, orders[-1] if orders else -1, note, held, num_backwards, is_stepped_twice)

    def _num_backwards(self, orders: Sequence[int], place: tuple[int, str]) -> int:
        """Return how many gradients of a parameter have come since the last step of it before the last of them."""
        if len(orders) < 2:
            return 1
        begun = [num for num in (self._num_taken[step] for step in self._steps.get(place, [])) if num <= orders[-1]]
        return len(orders) - bisect_left(orders, max(begun, default=0))


def _places_of(step: Step) -> Iterator[tuple[int, str]]:
    """Yield by what the parameters of a step are known."""
    return (place_of(module, name) for parameter in step.parameters for module, name in parameter.names)


def _around(name: str) -> Iterator[str]:
    """Yield a name, and those around it: ``a.b``, ``a``, and that of the model, which is empty."""
    while name:
        yield name
        name = name.rpartition(".")[0]
    yield ""


def _first_odd(rows: Sequence[Row]) -> int:
    """Return which of some rows is the first that is not finite, else the last."""
    return next((i for i, row in enumerate(rows) if not _is_finite(row)), len(rows) - 1)


def _is_finite(row: Row) -> bool:
    return math.isfinite(row.min) and math.isfinite(row.max)


def _figures(read: Row, times: float, count: int) -> Figures:
    """Return the figures of a tensor in which each element that was read stands so many times."""
    norm, reach = read.norm * math.sqrt(times), max(abs(read.min), abs(read.max))
    # Squares of float32 are beyond its range before the numbers are.
    is_lost = (math.isinf(norm) and math.isfinite(reach)) or (norm == 0 and reach > 0)
    return Figures(read.min, read.max, read.sum * times, math.nan if is_lost else norm, count)
