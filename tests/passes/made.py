"""Passes made by hand: values by their smallest and largest element, calls by their names."""

from __future__ import annotations

import math
from typing import Any

from tensornp.passes import records
from tensornp.passes.records import Call, Figures, Gradient, PassRecord, SourceLine, Step, Value

NAN, INF = math.nan, math.inf
FINE = (-1.0, 2.0)


def figures(ends: tuple[float, ...], *, norm: float = 3.0, count: int = 12) -> Figures:
    if math.isnan(ends[0]):
        return Figures(NAN, NAN, NAN, NAN, count)
    is_finite = all(map(math.isfinite, ends))
    return Figures(ends[0], ends[-1], sum(ends) / 2 * count, norm if is_finite else INF, count)


def value(ends: tuple[float, ...] | None = FINE, *, norm: float = 3.0, **facts: Any) -> Value:
    """Return a value; `ends` is None if it was not read, `grad` are the ends of its gradient."""
    shape = facts.pop("shape", (3, 4))
    grad, grad_norm = facts.pop("grad", None), facts.pop("grad_norm", 3.0)
    if grad is not None:
        facts |= {"grad": figures(grad, norm=grad_norm), "grad_order": facts.get("grad_order", 0)}
    read = None if ends is None else figures(ends, norm=norm, count=math.prod(shape))
    return Value(shape, facts.pop("dtype", "float32"), facts.pop("device", "cpu"), figures=read, **facts)


def weight(ends: tuple[float, ...] = FINE, **facts: Any) -> Value:
    return value(ends, requires_grad=True, **facts)


def leaf(name: str, class_name: str = "Linear", ends: tuple[float, ...] | None = FINE, **facts: Any) -> Call:
    """Return a call with one output; a Linear has a weight."""
    own = {key: facts.pop(key) for key in ("grad", "grad_norm", "grad_order", "norm", "dtype", "shape") if key in facts}
    output = value(ends, requires_grad=facts.pop("requires_grad", True), **own)
    params = {"weight": weight()} if class_name == "Linear" else {}
    given = {"status": records.RETURNED, "outputs": {"": output}, "params": params, **facts}
    return Call(0, records.MODULE, name, class_name, **given)


def chain(*calls: Call, inside: str = "", **facts: Any) -> PassRecord:
    """Return a pass of calls that each got the output of the call before, all inside one call if `inside` names it."""
    placed = [Call(0, records.BLOCK)]
    if inside:
        placed.append(Call(1, records.MODULE, "", inside, parent=0, status=records.RETURNED, ended=len(calls)))
    last, parent = value(), len(placed) - 1
    for call in calls:
        call.index, call.parent, call.ended = len(placed), parent, len(placed) - parent - 1
        call.inputs = call.inputs or {"[0]": last}
        for one in call.outputs.values():
            one.maker = call.index
            last = one
        placed.append(call)
    if inside:
        placed[1].inputs, placed[1].outputs = dict(placed[2].inputs), {"": last}
    return PassRecord(placed, **facts)


def block(*calls: Call, **facts: Any) -> PassRecord:
    """Return a pass of calls whose parents and values are given; outputs without a maker are their own."""
    for i, call in enumerate(calls, 1):
        call.index, call.parent = i, call.parent or 0
        call.ended = call.ended if call.ended >= 0 else 100 - i
    return PassRecord([Call(0, records.BLOCK), *calls], **facts)


def line(number: int, text: str) -> SourceLine:
    return SourceLine("/home/me/model.py", number, text)


def gradients(*named: tuple[str, tuple[float, ...] | None]) -> list[Gradient]:
    return [Gradient(name, figures(ends) if ends else None, i if ends else -1) for i, (name, ends) in enumerate(named)]


def step(num_calls: int, **facts: Any) -> Step:
    return Step(**{
        "class_name": "Adam", "source": line(30, "optimizer.step()"), "num_calls": num_calls,
        "num_parameters": 2, "num_with_gradient": 2, **facts,
    })  # fmt: skip
