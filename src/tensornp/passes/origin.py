"""The first NaN or Inf of a pass, found by walking back from the results to the call that produced it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tensornp.core.tensor.dtypes import largest, name_of
from tensornp.passes.backward import backward_origin, operator_of_backward
from tensornp.passes.records import (
    BACKWARD,
    BLOCK,
    MODULE,
    OPERATOR,
    RECOMPUTED,
    Call,
    Finding,
    PassRecord,
    Step,
    Value,
)
from tensornp.passes.wording import at, number, ranges_text

_RANGES = ("float16", "bfloat16", "float32", "float64")
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
        return backward_origin(record)
    if birth.how != _WEIGHT:
        return _finding(record, birth)
    step, was_finite = _step_before(record, birth)
    # The gradients before the step explain the weights after it.
    gradient = backward_origin(record, num_calls=step.num_calls) if step is not None else None
    return gradient or _weight_finding(birth, step, was_finite=was_finite)


def _first_birth(record: PassRecord) -> _Birth | None:
    for start in _starts(record):
        found = [one for one in _births(record, start, _is_odd) if one.call.asked_for != "Inf"]
        if not found and _is_nan(start.value):
            found = _births(record, start, _is_nan)
        if found:
            return min(found, key=lambda one: one.call.index)
    return None


def _starts(record: PassRecord) -> Iterator[_Birth]:
    """Yield odd results: of outermost calls as they ended, of the block, then weights at the end."""
    block = record.calls[0]
    outermost = [one for one in record.children(block) if one.kind == MODULE]
    for call in (*sorted(outermost, key=lambda one: one.ended), block):
        for value in call.outputs.values():
            if _is_start(value):
                yield _Birth("", call, value)
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
    known = [one.figures for one in inputs if one.figures is not None and one.figures.count]
    if call.detail:
        masked = [one for one in inputs if one.maker is not None and one.figures and one.figures.min == -math.inf]
        mask = record.calls[masked[0].maker or 0] if masked else None
        return call.detail + (f" ({mask.title}{at(mask.source)})" if mask is not None else "")
    dtype, reach = name_of(output.dtype), max((abs(end) for one in known for end in (one.min, one.max)), default=0.0)
    if output.figures is not None and output.figures.max == math.inf and dtype in _RANGES and known:
        limit = largest(dtype)
        if dtype == "float16" or reach * reach > limit:
            return f"it left the range of {dtype} ({number(limit)}); its inputs reached {number(reach)}"
    return ranges_text("its input", inputs)
