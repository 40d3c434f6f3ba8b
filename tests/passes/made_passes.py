"""Passes that are made by hand: values by their least and greatest element, calls by their names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tensornp.passes.records import CAME_WITH_THE_CALL, Figures, Gradient, ModuleCall, PassRecord, SourceLine, Value

NAN, INF = math.nan, math.inf
FINE = (-1.0, 2.0)
SHAPE = (3, 4)


def figures(least: float, greatest: float | None = None, *, norm: float = 3.0, count: int = 12) -> Figures:
    """Return figures of elements between two numbers."""
    greatest = least if greatest is None else greatest
    if math.isnan(least) or math.isnan(greatest):
        return Figures(NAN, NAN, NAN, NAN, count)
    is_finite = math.isfinite(least) and math.isfinite(greatest)
    return Figures(least, greatest, (least + greatest) / 2 * count, norm if is_finite else INF, count)


def value(
    ends: tuple[float, ...] | None = FINE,
    path: str = "",
    maker: int | None = None,
    *,
    grad: tuple[float, ...] | None = None,
    norm: float = 3.0,
    grad_norm: float = 3.0,
    **facts: Any,
) -> Value:
    """Return a value: `ends` are its least and its greatest element; None where it was not read."""
    shape, dtype = facts.pop("shape", SHAPE), facts.pop("dtype", "float32")
    return Value(
        path,
        shape,
        dtype,
        facts.pop("device", "cpu"),
        maker=maker,
        made_by=CAME_WITH_THE_CALL if maker is None else f"call {maker}",
        figures=None if ends is None else figures(*ends, norm=norm, count=math.prod(shape)),
        grad=None if grad is None else figures(*grad, norm=grad_norm, count=math.prod(shape)),
        grad_orders=facts.pop("grad_orders", () if grad is None else (0,)),
        **facts,
    )


def weight(ends: tuple[float, ...] = FINE, path: str = "weight", **facts: Any) -> Value:
    """Return a parameter."""
    return value(ends, path, requires_grad=facts.pop("requires_grad", True), **facts)


def one_call(
    index: int,
    name: str,
    class_name: str = "Block",
    *,
    got: Sequence[Value] = (),
    gave: Sequence[Value] = (),
    params: Sequence[Value] = (),
    parent: int | None = None,
    order: int = -1,
    **facts: Any,
) -> ModuleCall:
    """Return a call; without an order, it ended as if it had called nothing."""
    return ModuleCall(
        index, name, class_name, parent=parent, order=index if order < 0 else order,
        source=facts.pop("source", None), inputs=tuple(got), outputs=tuple(gave), params=tuple(params), **facts,
    )  # fmt: skip


def chain(*calls: ModuleCall, inside: str = "") -> PassRecord:
    """Return a pass of calls one after the other, each of which gets what the one before gave, inside of one."""
    start = 1 if inside else 0
    placed: list[ModuleCall] = []
    for i, call in enumerate(calls, start):
        got = call.inputs or tuple(replace(one, path="[0]", maker=i - 1, grad=None) for one in last(placed))
        placed.append(replace(call, index=i, order=i, inputs=got or (value(path="[0]"),), parent=0 if inside else None))
    if inside:
        gave = tuple(replace(one, maker=placed[-1].index) for one in placed[-1].outputs)
        got = (replace(placed[0].inputs[0]),)
        placed.insert(0, one_call(0, "", inside, got=got, gave=gave, order=len(placed) + 1))
    return PassRecord(tuple(placed))


def last(placed: list[ModuleCall]) -> tuple[Value, ...]:
    """Return what the last call gave."""
    return placed[-1].outputs if placed else ()


def leaf(name: str, class_name: str = "Linear", ends: tuple[float, ...] | None = FINE, **facts: Any) -> ModuleCall:
    """Return a call with a weight, which gave one value."""
    keys = ("grad", "norm", "grad_norm", "grad_orders", "dtype", "shape", "requires_grad")
    own = {key: facts.pop(key) for key in keys if key in facts}
    params = facts.pop("params", (weight(),) if class_name == "Linear" else ())
    return one_call(0, name, class_name, gave=(value(ends, **own),), params=params, **facts)


def line(number: int, text: str) -> SourceLine:
    """Return a line of a file of the user's."""
    return SourceLine("/home/me/model.py", number, "forward", text)


def gradients(*named: tuple[str, tuple[float, ...] | None]) -> tuple[Gradient, ...]:
    """Return gradients in the order in which they came."""
    return tuple(
        Gradient(name, figures(*ends) if ends else None, i if ends else -1) for i, (name, ends) in enumerate(named)
    )


def with_grads(record: PassRecord, grads: Iterable[Gradient]) -> PassRecord:
    """Return the pass with a backward."""
    return replace(record, grads=tuple(grads), had_backward=True)
