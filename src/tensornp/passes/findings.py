"""Findings on a pass: each rule reads the record alone and reports one fact."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import is_differentiable, name_of
from tensornp.passes import records
from tensornp.passes.origin import origin_of
from tensornp.passes.records import Call, Finding, Gradient, PassRecord, Value
from tensornp.passes.wording import at, listed, number, shape_text, sizes_text, zero_units_text

_FLOAT16_LIMIT = 65504.0
_MIN_POSITIONS = 32
"""At fewer positions, a unit may be 0 at all of them by chance."""
_MIN_DEAD = 0.05
"""The share of dead units in many healthy models is below."""
_MIN_LAYERS = 4
_MIN_STEP, _MIN_RATE, _MIN_GROWTH = map(math.log, (1.25, 1.5, 10))
"""Norms grow by the step at each layer, by the rate on average, and by the growth in all."""
_OVERWRITTEN = re.compile(r"modified by an inplace operation: \[\S+ \[([\d, ]*)\]\]")
_MAX_LINES = 3
_NUMBER = re.compile(r"(?<![^.])[0-9]+(?![^.])")


def findings_of(record: PassRecord) -> list[Finding]:
    found = [failure_of(record), origin_of(record)]
    return [one for one in found if one is not None] + [one for rule in _RULES for one in rule(record)]


def failed_call(record: PassRecord) -> Call | None:
    """Return the innermost module call that raised the error of the block, or that Ctrl-C left."""
    failed = None
    inside = record.children(record.calls[0]) if record.error else []
    errors = (record.error, *record.causes)
    while inside := [one for one in inside if one.kind == records.MODULE and _has_failed(one, errors)]:
        failed = inside[-1]
        inside = record.children(failed)
    return failed


def _has_failed(call: Call, errors: Sequence[str]) -> bool:
    return call.status == records.LEFT or (call.status == records.RAISED and call.error in errors)


def failure_of(record: PassRecord) -> Finding | None:
    if not record.error:
        return None
    match = _OVERWRITTEN.search(record.error)
    if match is not None and (finding := _overwritten(record, match[1])) is not None:
        return finding
    call = failed_call(record)
    kind_of_error = record.error.partition(":")[0]
    if call is None:
        ended = [one for one in record.modules() if one.status == records.RETURNED]
        after = f", after {max(ended, key=lambda one: one.ended).title} had returned" if ended else ""
        explanation = "`%%follow --operators` finds the lines that wrote over tensors"
        is_unknown = match is not None and not record.has_operators
        return Finding("failed", f"{kind_of_error} in the cell{after}", explanation if is_unknown else "")
    if call.status == records.LEFT:
        return Finding("failed", f"{kind_of_error} in {call.title}{at(call.source)}", "", call.index, call.source)
    return Finding("failed", f"{call.title} raised {call.error}", _inputs_text(record, call), call.index, call.source)


def _inputs_text(record: PassRecord, call: Call) -> str:
    weight = call.params.get("weight")
    given = [*call.inputs.values()]
    has_devices = len({one.device for one in (*given, *([weight] if weight else []))}) > 1
    inputs = [_described(one, has_devices=has_devices) + _maker_text(record, one) for one in given]
    noun = "its inputs were" if len(inputs) > 1 else "its input was"
    texts = [f"{noun} {' and '.join(inputs)}" if inputs else "it got no tensor"]
    if weight is not None:
        texts.append(f"its weight is {_described(weight, has_devices=has_devices)}")
    return "; ".join(texts)


def _described(value: Value, *, has_devices: bool) -> str:
    return shape_text(value) + (f" on {value.device}" if has_devices else "")


def _maker_text(record: PassRecord, value: Value) -> str:
    maker = record.calls[value.maker] if value.maker is not None else None
    while maker is not None and maker.kind != records.MODULE and maker.parent:
        maker = record.calls[maker.parent]
    return f" from {maker.title}" if maker is not None else ""


def _overwritten(record: PassRecord, sizes: str) -> Finding | None:
    shape = tuple(map(int, sizes.replace(",", " ").split()))
    writers = {
        str(call.source): call
        for call in record.operators()
        if call.phase != records.BACKWARD and any(_is_part_of(record, one, shape) for one in call.overwrote)
    }
    if not writers:
        return None
    last = [*writers.values()][-_MAX_LINES:]
    lines = [f"{one.title}{at(one.source)}" for one in last]
    fact = f"wrote over a tensor of shape {sizes_text(shape)} that the backward needs unchanged"
    if len(lines) == 1:
        return Finding("overwritten", f"{lines[0]} {fact}", "", last[0].index, last[0].source)
    return Finding("overwritten", f"one of these {fact}", "; ".join(lines), last[-1].index, last[-1].source)


def _is_part_of(record: PassRecord, value: Value, shape: tuple[int, ...]) -> bool:
    made = record.calls[value.maker].outputs.values() if value.maker is not None else ()
    return any(one.shape in (shape, shape[::-1]) for one in (value, *made))


def _idle_step(record: PassRecord) -> Iterator[Finding]:
    step = next((one for one in record.steps if one.num_parameters and not one.num_with_gradient), None)
    if step is not None:
        fact = f"a step of {step.class_name} began without gradients{at(step.source)}"
        reason = f"`.grad` was None for each of its {counted(step.num_parameters, 'parameter')}"
        yield Finding("idle step", fact, reason, source=step.source)


def _added(record: PassRecord) -> Iterator[Finding]:
    came = [one for one in record.grads if one.order >= 0]
    # `zero_grad(set_to_none=False)` leaves zeros.
    names = [one.name for one in came if one.held is not None and not one.held.min == one.held.max == 0]
    if names:
        fact = f"`.grad` of {counted(len(names), 'parameter')} was not empty when a gradient came"
        yield Finding("added", fact, f"the gradient was added to it: {listed(names)}")


def _no_gradient(record: PassRecord) -> Iterator[Finding]:
    names = _without_gradient(record)
    if not names:
        return
    cut = [one for one in record.modules() if _loses_gradient(one)]
    inner = [one for one in cut if not any(below in cut for below in record.children(one))]
    reason = f"{inner[0].title} returned a tensor without a gradient{at(inner[0].source)}" if inner else ""
    num = counted(len(record.grads), "parameter")
    fact = f"{len(names):,} of {num} got no gradient: {listed(_whole_modules(record, names))}"
    yield Finding("no gradient", fact, reason, inner[0].index if inner else None, inner[0].source if inner else None)


def _without_gradient(record: PassRecord) -> list[str]:
    """Return the parameters that got no gradient, of outermost modules with some gradient."""
    roots = sorted(record.outermost, key=len, reverse=True)
    models: dict[str, list[Gradient]] = defaultdict(list)
    for one in record.grads:
        models[next((root for root in roots if f"{one.name}.".startswith(f"{root}.".lstrip("."))), "")].append(one)
    reached = [model for model in models.values() if any(one.order >= 0 for one in model)]
    return [one.name for model in reached for one in model if one.order < 0 and not (one.is_held_at_end or one.note)]


def _whole_modules(record: PassRecord, names: Sequence[str]) -> list[str]:
    """Return the outermost modules without any gradient, and the names of other parameters."""
    others = [f"{one.name}." for one in record.grads if one.name not in names]
    found: dict[str, None] = {}
    for name in names:
        whole = name
        while (above := whole.rpartition(".")[0]) and not any(one.startswith(f"{above}.") for one in others):
            whole = above
        found[whole] = None
    return list(found)


def _loses_gradient(call: Call) -> bool:
    outputs = [one for one in call.outputs.values() if is_differentiable(name_of(one.dtype))]
    has_gradient = any(one.requires_grad for one in call.inputs.values())
    return has_gradient and bool(outputs) and not any(one.requires_grad for one in outputs)


def _near_the_end(record: PassRecord) -> Iterator[Finding]:
    reached: dict[int, float] = defaultdict(float)
    for call in record.modules():
        for one in (value.figures for value in call.outputs.values() if name_of(value.dtype) == "float16"):
            if one is not None and one.is_finite and one.count:
                reached[call.index] = max(reached[call.index], abs(one.min), abs(one.max))
    near = [record.calls[index] for index, reach in reached.items() if reach > _FLOAT16_LIMIT / 2]
    near = [call for call in near if not any(below in near for below in record.children(call))]
    if near:
        furthest = max(near, key=lambda one: reached[one.index])
        fact = f"{listed([one.title for one in near])} came within a factor of 2 of the limit of float16"
        reason = f"the largest number was {number(reached[furthest.index])}; the limit is {number(_FLOAT16_LIMIT)}"
        yield Finding("near the end", fact, reason, furthest.index, furthest.source)


def _growth(record: PassRecord) -> Iterator[Finding]:
    found: dict[str, list[tuple[float, Finding]]] = defaultdict(list)
    for calls in _layers(record):
        values = [_first_float(one) for one in calls]
        norms = [one.figures.norm if one is not None and one.figures else 0.0 for one in values]
        grads = [one.grad.norm if one is not None and one.grad else 0.0 for one in values]
        for what, layers, each in (("norms", calls, norms), ("gradient norms", calls[::-1], grads[::-1])):
            for verb, sign in (("grow", 1), ("fall", -1)):
                found[f"{what} {verb}"] += _steep(f"{what} {verb}", layers, each, sign)
    for several in filter(None, found.values()):
        yield max(several, key=lambda one: one[0])[1]


def _layers(record: PassRecord) -> list[list[Call]]:
    """Return first calls that are alike except for one number in their names."""
    found = defaultdict(list)
    for call in record.modules():
        value = _first_float(call)
        if value is None or call.nth or call.phase != records.FORWARD:
            continue
        for match in _NUMBER.finditer(call.name):
            found[call.name[: match.start()], call.name[match.end() :], call.class_name, value.shape].append(call)
    return list(found.values())


def _first_float(call: Call) -> Value | None:
    return next((one for one in call.outputs.values() if is_differentiable(name_of(one.dtype))), None)


def _steep(what: str, calls: Sequence[Call], norms: Sequence[float], sign: int) -> Iterator[tuple[float, Finding]]:
    """Yield the longest stretch over which norms grow, or fall if `sign` is -1, with its whole growth."""
    logs = [sign * math.log(norm) if 0 < norm < math.inf else math.nan for norm in norms]
    best, start = (0, 0), 0
    for i, (before, log) in enumerate(pairwise(logs), 1):
        if not log - before >= _MIN_STEP:
            start = i
        best = max(best, (start, i), key=lambda ends: ends[1] - ends[0])
    first, last = best
    num_steps, growth = last - first, logs[last] - logs[first]
    if num_steps + 1 >= _MIN_LAYERS and growth >= max(_MIN_GROWTH, _MIN_RATE * num_steps):
        ends = [f"{number(norms[i])} at {calls[i].name}" for i in best]
        fact = f"{what} ×{math.exp(sign * growth / num_steps):.2g} a layer, from {ends[0]} to {ends[1]}"
        # A layer and its parts grow alike: the layer began first.
        yield round(growth), Finding("growth", fact, "", calls[first].index, calls[first].source)


def _dead_units(record: PassRecord) -> Iterator[Finding]:
    least: dict[str, Call] = {}
    for call in record.modules():
        if call.zero_units is not None and call.zero_units[2] >= _MIN_POSITIONS and call.phase == records.FORWARD:
            key = call.name or call.class_name
            least[key] = min(least.get(key, call), call, key=_num_zero)
    dead = [one for one in least.values() if one.zero_units and _num_zero(one) >= _MIN_DEAD * one.zero_units[1]]
    facts = [zero_units_text(one.zero_units, f" of {one.title}") for one in dead if one.zero_units]
    if facts:
        yield Finding("dead units", facts[0], "; ".join(facts[1:3]), dead[0].index, dead[0].source)


def _num_zero(call: Call) -> int:
    return call.zero_units[0] if call.zero_units is not None else 0


def _buffers(record: PassRecord) -> Iterator[Finding]:
    odd = {name: found for name, found in record.buffers.items() if found[1].is_odd}
    if odd:
        index, value = next(iter(odd.values()))
        fact = f"{listed(list(odd))} {'contains' if len(odd) == 1 else 'contain'} {value.word} after this pass"
        yield Finding("buffer", fact, "", index, record.calls[index].source)


_RULES = (_idle_step, _added, _no_gradient, _near_the_end, _growth, _dead_units, _buffers)
