"""Findings on a pass: each rule reads the record alone and reports one fact."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import is_differentiable, name_of
from tensornp.passes.failure import failure_of
from tensornp.passes.origin import origin_of
from tensornp.passes.records import FORWARD, Call, Finding, Gradient, PassRecord, Value
from tensornp.passes.wording import at, listed, number, zero_units_text

_FLOAT16_LIMIT = 65504.0
_MIN_POSITIONS = 32
"""At fewer positions, a unit may be 0 at all of them by chance."""
_MIN_DEAD = 0.05
"""The share of dead units in many healthy models is below."""
_MIN_LAYERS = 4
_MIN_STEP, _MIN_RATE, _MIN_GROWTH = map(math.log, (1.25, 1.5, 10))
"""Norms grow by the step at each layer, by the rate on average, and by the growth in all."""
_NUMBER = re.compile(r"(?<![^.])[0-9]+(?![^.])")


def findings_of(record: PassRecord) -> list[Finding]:
    """Return all findings on a pass, the most serious first."""
    found = [failure_of(record), origin_of(record)]
    return [one for one in found if one is not None] + [one for rule in _RULES for one in rule(record)]


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
    names = [name for model in _by_model(record) for name in _without_gradient(model)]
    if not names:
        return
    cut = [one for one in record.modules() if _loses_gradient(one)]
    inner = [one for one in cut if not any(below in cut for below in record.children(one))]
    reason = f"{inner[0].title} returned a tensor without a gradient{at(inner[0].source)}" if inner else ""
    num = counted(len(record.grads), "parameter")
    fact = f"{len(names):,} of {num} got no gradient: {listed(_whole_modules(record, names))}"
    yield Finding("no gradient", fact, reason, inner[0].index if inner else None, inner[0].source if inner else None)


def _by_model(record: PassRecord) -> list[list[Gradient]]:
    """Return gradients by the outermost module whose name they begin with."""
    roots = sorted({one.name for one in record.modules() if one.parent == 0}, key=len, reverse=True)
    models = defaultdict(list)
    for one in record.grads:
        models[next((root for root in roots if f"{one.name}.".startswith(f"{root}.".lstrip("."))), "")].append(one)
    return list(models.values())


def _without_gradient(model: Sequence[Gradient]) -> list[str]:
    names = [one.name for one in model if one.order < 0 and not one.is_held_at_end and not one.note]
    return names if any(one.order >= 0 for one in model) else []


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
    reached = {one.index: _reach(one) for one in record.modules()}
    near = [one for one in record.modules() if _FLOAT16_LIMIT / 2 < reached[one.index] <= _FLOAT16_LIMIT]
    near = [one for one in near if not any(below in near for below in record.children(one))]
    if near:
        furthest = max(near, key=lambda one: reached[one.index])
        fact = f"{listed([one.title for one in near])} came within a factor of 2 of the limit of float16"
        reason = f"the largest number was {number(reached[furthest.index])}; the limit is {number(_FLOAT16_LIMIT)}"
        yield Finding("near the end", fact, reason, furthest.index, furthest.source)


def _reach(call: Call) -> float:
    figures = [one.figures for one in call.outputs.values() if name_of(one.dtype) == "float16" and one.figures]
    return max((abs(end) for one in figures if one.is_finite and one.count for end in (one.min, one.max)), default=0.0)


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
        if value is None or call.nth or call.phase != FORWARD:
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
        if call.zero_units is not None and call.zero_units[2] >= _MIN_POSITIONS and call.phase == FORWARD:
            key = call.name or call.class_name
            least[key] = min(least.get(key, call), call, key=_num_zero)
    dead = [one for one in least.values() if one.zero_units and _num_zero(one) >= _MIN_DEAD * one.zero_units[1]]
    if len(dead) == 1 and dead[0].zero_units is not None:
        fact = zero_units_text(dead[0].zero_units, f" of {dead[0].title}")
        yield Finding("dead units", fact, "", dead[0].index, dead[0].source)
    elif dead:
        names = [f"{one.title}: {one.zero_units[0]:,} of {one.zero_units[1]:,}" for one in dead if one.zero_units]
        fact = f"{counted(len(dead), 'activation')} have units that were 0 at all positions"
        yield Finding("dead units", fact, listed(names), dead[0].index, dead[0].source)


def _num_zero(call: Call) -> int:
    return call.zero_units[0] if call.zero_units is not None else 0


def _buffers(record: PassRecord) -> Iterator[Finding]:
    odd = {name: found for name, found in record.buffers.items() if found[1].is_odd}
    if odd:
        index, value = next(iter(odd.values()))
        verb = "contains" if len(odd) == 1 else "contain"
        word = value.figures.word if value.figures is not None else ""
        yield Finding(
            "buffer", f"{listed(list(odd))} {verb} {word} after this pass", "", index, record.calls[index].source
        )


_RULES: tuple[Callable[[PassRecord], Iterator[Finding]], ...] = (
    _idle_step,
    _added,
    _no_gradient,
    _near_the_end,
    _growth,
    _dead_units,
    _buffers,
)
