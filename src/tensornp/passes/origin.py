"""The first NaN or Inf of a pass, found by walking back from the results, or else from the gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tensornp.passes import records
from tensornp.passes.records import Call, Figures, Finding, PassRecord, Step, Value
from tensornp.passes.wording import at, number, range_left, ranges_text

_PRODUCED, _BEFORE, _CELL, _WEIGHT, _INPUT = "produced", "before", "cell", "weight", "input"


class _Place(NamedTuple):
    """A place at which a value became odd; `is_final` is set for the state of a weight at the end."""

    how: str
    call: Call
    value: Value
    path: str = ""
    is_final: bool = False


def origin_of(record: PassRecord) -> Finding | None:
    """Find the first NaN or Inf that reached a result, a name, a weight or a gradient."""
    place = _first_place(record)
    if place is None:
        return _backward_origin(record)
    if place.how != _WEIGHT:
        return _finding(record, place)
    place, step, was_finite = _first_reading(record, place)
    gradient = None
    if was_finite:
        # The gradients before a step, or a write of one's own, explain the weights after it.
        last = len(record.calls) if place.is_final else place.call.index
        gradient = _backward_origin(record, num_calls=step.num_calls if step is not None else last)
    return gradient or _weight_finding(place, step, was_finite=was_finite)


def _first_place(record: PassRecord) -> _Place | None:
    """Return the earliest place behind a result, else behind a weight at the end."""
    block = record.calls[0]
    outermost = [one for one in record.children(block) if one.kind == records.MODULE]
    outermost.sort(key=lambda one: one.ended)
    groups = (
        [_Place("", call, one) for call in outermost for one in call.outputs.values() if _is_start(one)],
        [_Place("", block, one) for one in block.outputs.values() if _is_start(one)],
        [_Place("", block, one) for one in _unread_results(record)],
    )
    found = [one for group in groups if (one := _earliest(record, group)) is not None]
    if not found:
        finals = ((name, record.calls[index], value) for name, (index, value) in record.finals.items())
        weights = (
            _Place(_WEIGHT, call, value, name.removeprefix(f"{call.name}."), is_final=True)
            for name, call, value in finals
            if _is_start(value)
        )
        return _earliest(record, weights)
    # The code of the cell is known least.
    return min(found, key=lambda one: (one.how == _CELL, one.call.index))


def _earliest(record: PassRecord, starts: Iterable[_Place]) -> _Place | None:
    """Return the earliest place behind the first start that leads to one."""
    for start in starts:
        found = [one for one in _places(record, start, lambda value: value.is_odd) if one.call.asked_for != "Inf"]
        if not found and _is_nan(start.value):
            found = _places(record, start, _is_nan)
        if found:
            return min(found, key=lambda one: one.call.index)
    return None


def _unread_results(record: PassRecord) -> Iterator[Value]:
    """Yield odd results outside of modules, such as a loss, that no later forward reads or writes over."""
    forward = [one for one in record.calls if one.phase != records.BACKWARD]
    read = {value.maker for call in forward for value in (*call.inputs.values(), *call.overwrote)}
    for call in record.children(record.calls[0]):
        is_last = call.kind == records.OPERATOR and call.phase == records.FORWARD and call.index not in read
        if is_last and call.asked_for != "NaN":
            # An operator is seen before autograd marks its result.
            is_tracked = any(one.requires_grad for one in call.inputs.values())
            yield from (one for one in call.outputs.values() if _is_nan(one) or (one.is_odd and is_tracked))


def _is_start(value: Value) -> bool:
    return _is_nan(value) or (value.is_odd and value.requires_grad)


def _is_nan(value: Value) -> bool:
    return value.word == "NaN"


def _places(record: PassRecord, start: _Place, is_sought: Callable[[Value], bool]) -> list[_Place]:
    """Walk back over values that are sought, and return the places before which there was none."""
    if start.is_final and start.value.maker is None:
        return [start]
    found: list[_Place] = []
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
            if not odd and maker.kind == records.OPERATOR and not _is_nan(value):
                # -Inf next to finite numbers is no mask if it was computed, as the logarithm of 0 is.
                made = [one for one in maker.inputs.values() if one.word and one.maker is not None]
                odd = [one for one in made if not record.calls[one.maker or 0].asked_for]
            todo += [(maker, one) for one in odd]
            if not odd:
                found.append(_Place(_PRODUCED, maker, value))
        elif path is not None:
            found.append(_Place(_WEIGHT, taker, value, path))
        elif taker.kind == records.BLOCK:
            found.append(_Place(_CELL, taker, value))
        elif above is not None and above.kind == records.MODULE and (odd := _reads(record, above, taker, is_sought)):
            todo += [(above, one) for one in odd]
        elif above is not None and above.kind == records.MODULE and taker.kind == records.MODULE:
            found.append(_Place(_BEFORE, taker, value))
        else:
            path = next((path for path, one in taker.inputs.items() if one is value), "")
            found.append(_Place(_INPUT, taker, value, path))
    return found


def _reads(record: PassRecord, call: Call, until: Call | None, is_sought: Callable[[Value], bool]) -> list[Value]:
    """Return sought weights, inputs, and results of calls inside that began before `until`."""
    values = [*call.params.values(), *call.inputs.values()]
    for one in record.children(call):
        if one.phase != records.BACKWARD and (until is None or one.index < until.index):
            values += one.outputs.values()
    return [one for one in values if is_sought(one)]


def _finding(record: PassRecord, place: _Place) -> Finding:
    how, call, value, path, _ = place
    word, where, source = value.word, call, call.source
    if how == _INPUT:
        fact = f"input {path} of {call.title} contained {word}".replace("  ", " ")
        explanation = "no followed call returned it"
    elif how == _CELL:
        fact = f"{word} first appeared in the cell, outside of {record.scope}"
        explanation = "" if record.has_operators else "no module returned it"
    elif how == _BEFORE:
        where = record.calls[call.parent or 0]
        fact, explanation = f"{word} first appeared in the code of {where.title}, before it called {call.title}", ""
    elif call.phase == records.BACKWARD:
        return _operator_of_backward(record, call)
    elif call.kind == records.OPERATOR:
        within = record.calls[call.parent or 0].title
        fact, explanation = f"{word} was first produced in {within}, at {call.title}", _made_of(record, call, value)
        if call.asked_for == word:
            fact, explanation = f"{word} was an argument of {call.title} in {within}", ""
    elif inside := [one for one in record.children(call) if one.kind == records.MODULE]:
        source = inside[-1].source
        fact = f"{word} first appeared in the code of {call.title}, after it called {inside[-1].title}"
        explanation = "no module inside returned it"
    else:
        fact, explanation = f"{word} was first produced in {call.title}", _made_of(record, call, value)
    is_again = records.RECOMPUTED in (call.phase, record.calls[call.parent or 0].phase)
    again = " as a checkpoint recomputed it" if is_again else ""
    return Finding(word.lstrip("−").lower(), f"{fact}{at(source)}{again}", explanation, where.index, source)


def _first_reading(record: PassRecord, place: _Place) -> tuple[_Place, Step | None, bool]:
    """Return the first call with an odd weight, the step before it, and whether it was finite before."""
    path, end = place.path, len(record.calls) if place.is_final else place.call.index
    calls = [one for one in record.modules() if one.name == place.call.name and path in one.params]
    # A mask may have kept it from the results until later.
    first = next((i for i, one in enumerate(calls) if one.params[path].is_odd), len(calls))
    if first < len(calls):
        end, place = calls[first].index, _Place(_WEIGHT, calls[first], calls[first].params[path], path)
    before = calls[first - 1].params[path].figures if first else None
    if before is None or not before.is_finite:
        return place, None, False
    return place, next((one for one in record.steps if calls[first - 1].index < one.num_calls <= end), None), True


def _weight_finding(place: _Place, step: Step | None, *, was_finite: bool) -> Finding:
    call, word = place.call, place.value.word
    when = "after this pass" if place.is_final else f"when {call.title} was called"
    source = call.source if step is None else step.source
    explanation = "it was finite at the call before" if was_finite else ""
    if step is not None:
        explanation += f", and a step of {step.class_name} came between{at(step.source)}"
    fact = f"{call.name}.{place.path}".lstrip(".") + f" contained {word} {when}"
    return Finding(word.lstrip("−").lower(), fact, explanation, call.index, source)


def _made_of(record: PassRecord, call: Call, output: Value) -> str:
    inputs = list(call.inputs.values())
    if call.detail:
        masked = [one for one in inputs if one.maker is not None and one.figures and one.figures.min == -math.inf]
        mask = record.calls[masked[0].maker or 0] if masked else None
        return call.detail + (f" ({mask.title}{at(mask.source)})" if mask is not None else "")
    return range_left(output, inputs, "its inputs") or ranges_text("its input", inputs)


class _Came(NamedTuple):
    """A gradient of an output of the call `call`, or of a parameter if this is None."""

    order: int
    name: str
    figures: Figures
    call: int | None


def _backward_origin(record: PassRecord, num_calls: int | None = None) -> Finding | None:
    """Find the first odd gradient; only among the first calls of the block, if `num_calls` limits them."""
    came = _gradients(record)
    first = next((i for i, one in enumerate(came) if not one.figures.is_finite), None)
    operator = _operator_finding(record)
    if not came and num_calls is None:
        # No module was called, so operators are all that was seen of the backward.
        return operator
    if first is None:
        return None
    index = next((one.call for one in reversed(came[: first + 1]) if one.call is not None), None)
    if num_calls is not None and (index is None or index >= num_calls):
        return None
    if operator is not None:
        return operator
    name, word = came[first].name, came[first].figures.word
    source = record.calls[index].source if index is not None else None
    at_first = came[first].call
    outputs = record.calls[at_first].outputs.values() if at_first is not None else ()
    # A gradient of -Inf may come from an output of Inf.
    explanation = next((f"its output contained {one.word}" for one in outputs if one.word), "")
    step = record.step_of(record.calls[index]) if index is not None else 0
    before = next((one.call for one in reversed(came[:first]) if one.call is not None), None)
    if first == 0 or (step and before is not None and record.step_of(record.calls[before]) != step):
        fact = f"the first gradient, of {name}, contained {word}"
        if at_first is not None and not explanation:
            explanation, source = f"it came from code after {name}, outside of {record.scope}", None
    else:
        fact = f"{word} entered the gradients between {came[first - 1].name} (finite) and {name}"
    return Finding(word.lstrip("−").lower(), fact, _scaler_text(record, word) or explanation, index, source)


def _scaler_text(record: PassRecord, word: str) -> str:
    if "Inf" not in word or record.scaler is None:
        return ""
    scaler, scale = record.scaler
    return f"{scaler} (scale {number(scale)}) skips a step with such gradients"


def _operator_of_backward(record: PassRecord, call: Call) -> Finding:
    forward = record.calls[call.forward] if call.forward is not None else None
    name = forward.title if forward is not None else call.detail or call.title
    parent = record.calls[call.parent or 0]
    where = f" in {parent.title}" if parent.kind == records.MODULE else ""
    outputs = [one for one in call.outputs.values() if one.word]
    words = {one.word for one in outputs}
    word = "NaN" if "NaN" in words else next(iter(words), "NaN")
    explanation = range_left(outputs[0], call.inputs.values(), "the gradient") if outputs else ""
    if not explanation and forward is not None:
        explanation = ranges_text(f"the input of {forward.title}", forward.inputs.values())
    explanation = "; ".join(filter(None, (explanation, _scaler_text(record, word))))
    fact = f"{word} was first produced in the backward of {name}{where}{at(call.source)}"
    return Finding(word.lstrip("−").lower(), fact, explanation, call.index, call.source)


def _gradients(record: PassRecord) -> list[_Came]:
    owners: dict[int, tuple[Call, str, Value]] = {}
    for call in sorted(record.modules(), key=lambda one: one.ended):
        for path, value in call.outputs.items():
            # One of several outputs may be finite, and another one not.
            name = call.title if len(call.outputs) == 1 else f"output {path} of {call.title}"
            owners.setdefault(id(value), (call, name, value))
    came = [
        _Came(value.grad_order, name, value.grad, call.index)
        for call, name, value in owners.values()
        if value.grad is not None
    ]
    came += [_Came(one.order, one.name, one.figures, None) for one in record.grads if one.figures is not None]
    return sorted(came, key=lambda one: one.order)


def _operator_finding(record: PassRecord) -> Finding | None:
    """Return the origin of the first odd gradient by operators: one of a backward, or a forward value."""
    backward = [one for one in record.operators() if one.phase == records.BACKWARD]
    read = {value.maker for call in backward for value in call.inputs.values()}
    # Odd results that a later operator reads may have been masked there.
    ends = (call for call in backward if call.index not in read and not call.asked_for)
    start = next((_Place("", call, one) for call in ends for one in call.outputs.values() if one.word), None)
    if start is None:
        return None
    places = _places(record, start, lambda value: value.is_odd)
    place = min(places, key=lambda one: one.call.index, default=start)
    if place.call.phase == records.BACKWARD:
        # An odd input of a backward came from outside of what is followed.
        return _finding(record, place) if place.how == _PRODUCED else None
    found = _weight_finding(place, None, was_finite=False) if place.how == _WEIGHT else _finding(record, place)
    return replace(found, explanation="; ".join(filter(None, (found.explanation, "the backward read it"))))
