"""The first NaN or Inf of a pass, found by walking back from the results to the call that produced it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tensornp.passes.backward import backward_origin, operator_of_backward
from tensornp.passes.records import (
    BACKWARD,
    BLOCK,
    FORWARD,
    MODULE,
    OPERATOR,
    RECOMPUTED,
    Call,
    Finding,
    PassRecord,
    Step,
    Value,
)
from tensornp.passes.wording import at, range_left, ranges_text

_PRODUCED, _BEFORE, _CELL, _WEIGHT, _INPUT = "produced", "before", "cell", "weight", "input"


class _Birth(NamedTuple):
    """A place at which a value became odd; `path` names a weight or an input.

    `is_final` is set for the state of a weight at the end.
    """

    how: str
    call: Call
    value: Value
    path: str = ""
    is_final: bool = False


def origin_of(record: PassRecord) -> Finding | None:
    """Find the first NaN or Inf that reached a result, a name, a weight or a gradient."""
    birth = _first_birth(record)
    if birth is None:
        found = backward_origin(record)
        return (found and _dropped_in_forward(record, found)) or found
    if birth.how != _WEIGHT:
        return _finding(record, birth)
    step, was_finite = _step_before(record, birth)
    # The gradients before the step explain the weights after it.
    gradient = backward_origin(record, num_calls=step.num_calls) if step is not None else None
    return gradient or _weight_finding(birth, step, was_finite=was_finite)


def _dropped_in_forward(record: PassRecord, found: Finding) -> Finding | None:
    """Find where the forward produced a NaN that a later call dropped, if its backward brought it back."""
    call = record.calls[found.call] if found.call is not None else None
    forward = record.calls[call.forward] if call is not None and call.forward is not None else None
    value = next((one for one in forward.outputs.values() if _is_nan(one)), None) if forward is not None else None
    if forward is None or value is None:
        return None
    birth = _earliest(record, [_Birth("", forward, value)])
    if birth is None or birth.how == _WEIGHT:
        return None
    finding = _finding(record, birth)
    explanation = f"a later call dropped it, and the backward of {forward.title} brought it back"
    return replace(finding, explanation="; ".join(filter(None, (finding.explanation, explanation))))


def _first_birth(record: PassRecord) -> _Birth | None:
    """Return the earliest place behind a result, else behind a weight at the end."""
    block = record.calls[0]
    outermost = sorted((one for one in record.children(block) if one.kind == MODULE), key=lambda one: one.ended)
    groups = (
        [_Birth("", call, one) for call in outermost for one in call.outputs.values() if _is_start(one)],
        [_Birth("", block, one) for one in block.outputs.values() if _is_start(one)],
        [_Birth("", block, one) for one in _unread_results(record)],
    )
    found = [one for group in groups if (one := _earliest(record, group)) is not None]
    if not found:
        return _earliest(record, _odd_weights(record))
    # What the cell did is known least.
    return min(found, key=lambda one: (one.how == _CELL, one.call.index))


def _earliest(record: PassRecord, starts: Iterable[_Birth]) -> _Birth | None:
    """Return the earliest place behind the first start that leads to one."""
    for start in starts:
        found = [one for one in _births(record, start, _is_odd) if one.call.asked_for != "Inf"]
        if not found and _is_nan(start.value):
            found = _births(record, start, _is_nan)
        if found:
            return min(found, key=lambda one: one.call.index)
    return None


def _unread_results(record: PassRecord) -> Iterator[Value]:
    """Yield odd results of operators outside of modules that no later call reads, such as a loss in a function."""
    read = {id(value) for call in record.calls for value in call.inputs.values()}
    for call in record.children(record.calls[0]):
        if call.kind == OPERATOR and call.phase == FORWARD and call.asked_for != "NaN":
            # An operator is seen before autograd marks its result.
            is_tracked = any(one.requires_grad for one in call.inputs.values())
            for value in call.outputs.values():
                if id(value) not in read and (_is_nan(value) or (value.is_odd and is_tracked)):
                    yield value


def _odd_weights(record: PassRecord) -> Iterator[_Birth]:
    for name, (index, value) in record.finals.items():
        if _is_start(value):
            call = record.calls[index]
            yield _Birth(_WEIGHT, call, value, name.removeprefix(f"{call.name}."), is_final=True)


def _is_start(value: Value) -> bool:
    return _is_nan(value) or (value.is_odd and value.requires_grad)


def _is_odd(value: Value) -> bool:
    return value.is_odd


def _is_nan(value: Value) -> bool:
    return value.figures is not None and value.figures.has_nan


def _births(record: PassRecord, start: _Birth, is_sought: Callable[[Value], bool]) -> list[_Birth]:
    """Walk back over values that are sought, and return the places before which there was none."""
    if start.is_final and start.value.maker is None:
        return [start]
    found: list[_Birth] = []
    todo, seen = [(start.call, start.value)], set()
    while todo:
        taker, value = todo.pop()
        if (taker.index, id(value)) in seen:
            continue
        seen.add((taker.index, id(value)))
        above = None if taker.parent is None else record.calls[taker.parent]
        path = next((path for path, one in taker.params.items() if one is value), None)
        if value.maker is not None:
            maker = record.calls[value.maker]
            odd = _reads(record, maker, None, is_sought)
            todo += [(maker, one) for one in odd]
            if not odd:
                found.append(_Birth(_PRODUCED, maker, value))
        elif path is not None:
            found.append(_Birth(_WEIGHT, taker, value, path))
        elif taker.kind == BLOCK:
            found.append(_Birth(_CELL, taker, value))
        elif above is not None and above.kind == MODULE and (odd := _reads(record, above, taker, is_sought)):
            todo += [(above, one) for one in odd]
        elif above is not None and above.kind == MODULE and taker.kind == MODULE:
            found.append(_Birth(_BEFORE, taker, value))
        else:
            path = next((path for path, one in taker.inputs.items() if one is value), "")
            found.append(_Birth(_INPUT, taker, value, path))
    return found


def _reads(record: PassRecord, call: Call, until: Call | None, is_sought: Callable[[Value], bool]) -> list[Value]:
    """Return sought weights, inputs, and results of calls inside that began before `until`."""
    values = [*call.params.values(), *call.inputs.values()]
    for one in record.children(call):
        if one.phase != BACKWARD and (until is None or one.index < until.index):
            values += one.outputs.values()
    return [one for one in values if is_sought(one)]


def _finding(record: PassRecord, birth: _Birth) -> Finding:
    how, call, value, path, _ = birth
    word = value.figures.word if value.figures is not None else ""
    where, source = call, call.source
    if how == _INPUT:
        fact = f"input {path} of {call.title} contained {word}".replace("  ", " ")
        explanation = "no followed call returned it"
    elif how == _CELL:
        fact, explanation = f"{word} first appeared in the cell, outside of all modules", ""
    elif how == _BEFORE:
        where = record.calls[call.parent or 0]
        fact, explanation = f"{word} first appeared in the code of {where.title}, before it called {call.title}", ""
    elif call.phase == BACKWARD:
        return operator_of_backward(record, call)
    elif call.kind == OPERATOR:
        within = record.calls[call.parent or 0].title
        fact, explanation = f"{word} was first produced in {within}, at {call.title}", _made_of(record, call, value)
        if call.asked_for == word:
            fact, explanation = f"{word} was an argument of {call.title} in {within}", ""
    elif inside := [one for one in record.children(call) if one.kind == MODULE]:
        source = inside[-1].source
        fact = f"{word} first appeared in the code of {call.title}"
        explanation = f"no module inside returned it; the last call was {inside[-1].title}"
    else:
        fact, explanation = f"{word} was first produced in {call.title}", _made_of(record, call, value)
    is_again = RECOMPUTED in (call.phase, record.calls[call.parent or 0].phase)
    again = " as a checkpoint recomputed it" if is_again else ""
    return Finding(word.lstrip("−").lower(), f"{fact}{at(source)}{again}", explanation, where.index, source)


def _step_before(record: PassRecord, birth: _Birth) -> tuple[Step | None, bool]:
    """Return the step that came between a finite and an odd weight; and whether it was finite."""
    last, name, path = len(record.calls) if birth.is_final else birth.call.index, birth.call.name, birth.path
    calls = (one for one in reversed(record.calls[:last]) if one.kind == MODULE and one.name == name)
    before = next((one for one in calls if path in one.params), None)
    figures = before.params[path].figures if before is not None else None
    if before is None or figures is None or not figures.is_finite:
        return None, False
    return next((one for one in record.steps if before.index < one.num_calls <= last), None), True


def _weight_finding(birth: _Birth, step: Step | None, *, was_finite: bool) -> Finding:
    call, figures = birth.call, birth.value.figures
    word = figures.word if figures is not None else ""
    when = "after this pass" if birth.is_final else f"when {call.title} was called"
    source = call.source if step is None else step.source
    explanation = "it was finite at the call before" if was_finite else ""
    if step is not None:
        explanation += f", and a step of {step.class_name} came between{at(step.source)}"
    fact = f"{call.name}.{birth.path}".lstrip(".") + f" contained {word} {when}"
    return Finding(word.lstrip("−").lower(), fact, explanation, call.index, source)


def _made_of(record: PassRecord, call: Call, output: Value) -> str:
    """Return masked rows, the range that a result left, or the range of the inputs."""
    inputs = list(call.inputs.values())
    if call.detail:
        masked = [one for one in inputs if one.maker is not None and one.figures and one.figures.min == -math.inf]
        mask = record.calls[masked[0].maker or 0] if masked else None
        return call.detail + (f" ({mask.title}{at(mask.source)})" if mask is not None else "")
    return range_left(output, inputs, "its inputs") or ranges_text("its input", inputs)
