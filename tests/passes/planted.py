"""Random models, simulated call by call, with one NaN, Inf, bad weight or bad input in them.

Only one fact is simulated: everything computed from a bad value is bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st
from made import FINE, INF, NAN, block, value, weight

from tensornp.passes.records import (
    MODULE,
    OPERATOR,
    RETURNED,
    Call,
    PassRecord,
    SourceLine,
    Value,
)

BAD = {"nan": (NAN,), "inf": (-3.0, INF)}


@dataclass(frozen=True)
class Module:
    """A module of a random model; a leaf has none below."""

    name: str
    below: tuple[Module, ...] = ()

    def all(self) -> Iterator[Module]:
        """Yield the module and all below."""
        yield self
        for one in self.below:
            yield from one.all()


@dataclass(eq=False)
class Made:
    """A value of the simulation."""

    value: Value
    is_bad: bool


@dataclass
class Plan:
    """The planted fault: its kind, the name of the module, and the place among the calls of its code."""

    kind: str = ""
    name: str = ""
    at: int = 0
    what: str = "nan"


@dataclass
class Simulation:
    """A forward of a model."""

    draw: st.DrawFn
    plan: Plan
    num_ended: int = 0
    calls: list[Call] = field(default_factory=list)

    def made(self, of: list[Made], *, is_bad: bool = False, maker: int | None = None) -> Made:
        """Return a new value, bad if any of those it is computed from is."""
        is_bad = is_bad or any(one.is_bad for one in of)
        ends = BAD[self.plan.what] if is_bad else FINE
        return Made(value(ends, maker=maker, dtype="float16", requires_grad=True), is_bad)

    def run(self, module: Module, parent: int, got: list[Made]) -> Made:
        """Call a module and return its output."""
        is_planted = self.plan.name == module.name
        is_odd = is_planted and self.plan.kind == "weight"
        held = Made(weight(BAD[self.plan.what] if is_odd else FINE, dtype="float16"), is_odd)
        call = Call(len(self.calls) + 1, MODULE, module.name, "Block" if module.below else "Linear", parent=parent)
        call.inputs = {f"[{i}]": one.value for i, one in enumerate(got)}
        call.params, call.status = {"weight": held.value}, RETURNED
        self.calls.append(call)
        if module.below:
            result = self.inside(module, call, [*got, held])
        else:
            is_first = is_planted and self.plan.kind in ("leaf", "overflow")
            result = self.made([*got, held], is_bad=is_first, maker=call.index)
        if result.value.maker is None:
            # The code of the module has computed it, or an input or a weight is returned, which torch gives a new view.
            result = self.made([result], maker=call.index) if result in (*got, held) else result
            result.value.maker = call.index
        call.outputs, call.ended = {"": result.value}, self.num_ended
        self.num_ended += 1
        return result

    def inside(self, module: Module, call: Call, scope: list[Made]) -> Made:
        """Run the code of a module that calls others."""
        is_planted = self.plan.kind == "own code" and self.plan.name == module.name
        for i, child in enumerate(module.below):
            got = self.draw(st.lists(st.sampled_from(scope), min_size=1, max_size=2, unique_by=id))
            if is_planted and self.plan.at == i:
                got = [self.made(got, is_bad=True)]
            elif self.draw(st.booleans()):
                got = [self.made(got)]
            scope.append(self.run(child, call.index, got))
        if is_planted and self.plan.at == len(module.below):
            return self.made(scope, is_bad=True)
        if self.draw(st.booleans()):
            return scope[-1]
        return self.made([one for one in scope if self.draw(st.booleans())])


@st.composite
def models(draw: st.DrawFn) -> Module:
    """Draw a model of up to three levels."""

    def module(name: str, depth: int) -> Module:
        num = draw(st.integers(1 if depth == 0 else 0, 3)) if depth < 3 else 0
        return Module(name, tuple(module(f"{name}.{i}" if name else str(i), depth + 1) for i in range(num)))

    return module("", 0)


@st.composite
def forwards(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[Plan, PassRecord]:
    """Draw the pass of a model with a fault of one of some kinds."""
    model = draw(models())
    kind = draw(st.sampled_from(kinds))
    places = [one for one in model.all() if kind in ("", "input", "weight") or bool(one.below) is (kind == "own code")]
    one = model if kind == "input" else draw(st.sampled_from(places))
    at = draw(st.integers(0, len(one.below))) if kind == "own code" else 0
    plan = Plan(kind, one.name, at, "inf" if kind == "overflow" else draw(st.sampled_from(["nan", "inf"])))
    run = Simulation(draw, plan)
    inputs = [run.made([], is_bad=kind == "input" and i == 0) for i in range(draw(st.integers(1, 2)))]
    run.run(model, 0, inputs)
    return plan, block(*run.calls)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Call, PassRecord]:
    """Draw operators with up to three earlier results as inputs; the last result is bound to a name.

    One of them produces a bad value. Some pass no bad value on.
    """
    count, what = draw(st.integers(1, 14)), draw(st.sampled_from(["nan", "inf"]))
    first = draw(st.integers(0, count - 1))
    calls: list[Call] = []
    for i in range(count):
        taken = draw(st.lists(st.sampled_from(calls), max_size=3, unique_by=id)) if calls else []
        inputs = {str(one.index): one.outputs[""] for one in taken}
        stops = draw(st.integers(0, 4)) == 0
        is_bad = i == first or (not stops and any(one.is_odd for one in inputs.values()))
        result = value(BAD[what] if is_bad else FINE, maker=i + 1, requires_grad=True)
        source = SourceLine("model.py", i + 1, f"h = step_{i}(h)")
        calls.append(Call(i + 1, OPERATOR, f"op{i}", source=source, inputs=inputs, outputs={"": result}))
    record = block(*calls, has_operators=True)
    record.calls[0].outputs["h"] = calls[-1].outputs[""]
    return calls[first], record
