"""Random models, simulated call by call, with one NaN, Inf, bad weight or bad input in them.

Only one fact is simulated: everything computed from a bad value is bad. Each value knows the values it was computed
from, so that gradients can be sent back through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from made import FINE, INF, NAN, block, figures, value, weight

from tensornp.passes.records import (
    FORWARD,
    LEFT,
    MODULE,
    OPERATOR,
    RAISED,
    RECOMPUTED,
    RETURNED,
    STOPPED,
    Call,
    Figures,
    Gradient,
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
    """A value of the simulation, and the values it was computed from."""

    value: Value
    is_bad: bool
    of: tuple[Made, ...] = ()


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
    has_own_code: bool = True
    num_ended: int = 0
    calls: list[Call] = field(default_factory=list)
    got: dict[int, list[Made]] = field(default_factory=dict)
    gave: dict[int, Made] = field(default_factory=dict)

    def made(self, of: list[Made], *, is_bad: bool = False, maker: int | None = None) -> Made:
        """Return a new value, bad if any of those it is computed from is."""
        is_bad = is_bad or any(one.is_bad for one in of)
        ends = BAD[self.plan.what] if is_bad else FINE
        return Made(value(ends, maker=maker, dtype="float16", requires_grad=True), is_bad, tuple(of))

    def run(self, module: Module, parent: int, got: list[Made]) -> Made:
        """Call a module and return its output."""
        is_planted = self.plan.name == module.name
        is_odd = is_planted and self.plan.kind == "weight"
        held = Made(weight(BAD[self.plan.what] if is_odd else FINE, dtype="float16"), is_odd)
        call = Call(len(self.calls) + 1, MODULE, module.name, "Block" if module.below else "Linear", parent=parent)
        call.inputs = {f"[{i}]": one.value for i, one in enumerate(got)}
        call.params, call.status = {"weight": held.value}, RETURNED
        self.calls.append(call)
        self.got[call.index] = got
        if module.below:
            result = self.inside(module, call, [*got, held])
        else:
            is_born = is_planted and self.plan.kind in ("leaf", "overflow")
            result = self.made([*got, held], is_bad=is_born, maker=call.index)
        if result.value.maker is None:
            # The code of the module has computed it, or an input or a weight is returned, which torch gives a new view.
            result = self.made([result], maker=call.index) if result in (*got, held) else result
            result.value.maker = call.index
        call.outputs, call.ended = {"": result.value}, self.num_ended
        self.num_ended += 1
        self.gave[call.index] = result
        return result

    def inside(self, module: Module, call: Call, scope: list[Made]) -> Made:
        """Run the code of a module that calls others."""
        is_planted = self.plan.kind == "own code" and self.plan.name == module.name
        for i, child in enumerate(module.below):
            got = self.draw(st.lists(st.sampled_from(scope), min_size=1, max_size=2, unique_by=id))
            if is_planted and self.plan.at == i:
                got = [self.made(got, is_bad=True)]
            elif self.has_own_code and self.draw(st.booleans()):
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
    birth = draw(st.integers(0, count - 1))
    calls: list[Call] = []
    for i in range(count):
        taken = draw(st.lists(st.sampled_from(calls), max_size=3, unique_by=id)) if calls else []
        inputs = {str(one.index): one.outputs[""] for one in taken}
        stops = draw(st.integers(0, 4)) == 0
        is_bad = i == birth or (not stops and any(one.is_odd for one in inputs.values()))
        result = value(BAD[what] if is_bad else FINE, maker=i + 1, requires_grad=True)
        source = SourceLine("model.py", i + 1, f"h = step_{i}(h)")
        calls.append(Call(i + 1, OPERATOR, f"op{i}", source=source, inputs=inputs, outputs={"": result}))
    record = block(*calls, has_operators=True)
    record.calls[0].outputs["h"] = calls[-1].outputs[""]
    return calls[birth], record


@st.composite
def backwards(draw: st.DrawFn) -> tuple[Plan, PassRecord]:
    """Draw a finite forward with a bad gradient that is first produced in the backward of a leaf."""
    model = draw(models())
    one = draw(st.sampled_from([one for one in model.all() if not one.below]))
    plan = Plan("backward", one.name, what=draw(st.sampled_from(["nan", "inf"])))
    run = Simulation(draw, Plan(what=plan.what), has_own_code=False)
    run.run(model, 0, [run.made([])])
    faulty = next(call for call in run.calls if call.name == one.name)
    bad: set[int] = set()
    todo = list(run.got[faulty.index])
    while todo:
        made = todo.pop()
        if id(made) not in bad:
            bad.add(id(made))
            todo += made.of
    grads = []
    for call in sorted(run.calls, key=lambda one: -one.ended):
        made = run.gave[call.index]
        if made.value.grad is None:
            made.value.grad = figures(BAD[plan.what] if id(made) in bad else FINE)
            made.value.grad_order = 2 * (run.num_ended - call.ended)
        is_bad = id(made) in bad or (call is faulty and draw(st.booleans()))
        if call.class_name == "Linear":
            found = figures(BAD[plan.what] if is_bad else FINE)
            grads.append(Gradient(f"{call.name}.weight", found, 2 * (run.num_ended - call.ended) + 1))
    return plan, block(*run.calls, grads=grads)


@st.composite
def damaged(draw: st.DrawFn) -> PassRecord:
    """Draw a pass of odd facts; the indices of calls stay valid."""
    _, record = draw(st.one_of(forwards(("leaf", "weight", "input", "own code")), backwards()))
    # One seed: drawing each fact takes too long.
    random = draw(st.randoms(use_true_random=True))
    ends = (-INF, -5e-324, 0.0, 5e-324, 1.7e308, INF, NAN)
    shapes = ((), (0,), (3,), (3, 4), (2, 3, 4, 5))

    def odd(known: Figures | None) -> Figures | None:
        return random.choice([None, known, Figures(*random.choices(ends, k=4), random.choice([0, 1, 12]))])

    for call in record.calls[1:]:
        for one in (*call.inputs.values(), *call.outputs.values(), *call.params.values()):
            one.figures, one.grad, one.shape = odd(one.figures), odd(one.grad), random.choice(shapes)
            one.dtype = random.choice(["float16", "bfloat16", "complex64", "qint8", "int64", "", "mine"])
            one.maker = random.choice([one.maker, None, random.randrange(1, len(record.calls))])
            one.requires_grad, one.note = random.random() < 0.5, random.choice(["", "on meta"])
        call.name = random.choice([call.name, "", "0", "layers.3", "layers.٣", "a..b", "." * 9])
        call.class_name = random.choice(["Linear", "Conv2d", "ReLU", "Mine"])
        call.phase, call.nth = random.choice([FORWARD, RECOMPUTED]), random.randint(0, 2)
        call.status, call.ended = random.choice([RETURNED, RAISED, LEFT, STOPPED]), random.choice([call.ended, -1])
        call.zero_units = random.choice([None, (0, 0, 0), (3, 4, 64)])
    record.grads = [replace(one, figures=odd(one.figures), held=odd(one.held)) for one in record.grads]
    record.error = random.choice(["", "RuntimeError: no"])
    return record
