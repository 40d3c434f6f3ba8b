"""Random models whose passes are simulated call by call, with one NaN, Inf, bad weight or bad input in them.

What a value holds is all that is simulated: whatever is made of a bad value is bad. A simulated value knows of which
others it was made, so that gradients can be sent back through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from made_passes import FINE, INF, NAN, figures, value, weight

from tensornp.passes.records import (
    FORWARD,
    LEFT,
    RAISED,
    RECOMPUTED,
    RETURNED,
    STOPPED_EARLY,
    Figures,
    Gradient,
    ModuleCall,
    PassRecord,
    Value,
)

BAD = {"nan": (NAN,), "inf": (-3.0, INF)}


@dataclass(frozen=True)
class Module:
    """A module of a random model; without any below it is a leaf."""

    name: str
    below: tuple[Module, ...] = ()

    def all(self) -> Iterator[Module]:
        """Yield it, and what is below it."""
        yield self
        for one in self.below:
            yield from one.all()


@dataclass(eq=False)
class Made:
    """A value of the simulation."""

    is_bad: bool
    maker: int | None
    of: tuple[Made, ...] = ()


@dataclass
class Plan:
    """What is planted: of which kind, in which module, and where in it."""

    kind: str = ""
    name: str = ""
    at: int = 0
    what: str = "nan"
    expected: str = ""


@dataclass
class Simulation:
    """One forward of a model."""

    draw: st.DrawFn
    plan: Plan
    has_own_code: bool = True
    drops: bool = True
    num_ended: int = 0
    calls: list[ModuleCall | None] = field(default_factory=list)
    got: list[list[Made]] = field(default_factory=list)
    gave: dict[int, Made] = field(default_factory=dict)
    is_outermost: bool = False

    def run(self, module: Module, parent: int | None, got: list[Made]) -> Made:
        """Call a module, and return what it gives."""
        plan, index = self.plan, len(self.calls)
        is_planted = plan.name == module.name
        self.calls.append(None)
        self.got.append(got)
        holds_bad = is_planted and plan.kind == "weight"
        given = tuple(self.value(one, f"[{i}]") for i, one in enumerate(got))
        if module.below:
            result = self.inside(module, index, [*got, *([Made(True, None)] if holds_bad else [])])
        else:
            is_born = is_planted and plan.kind in ("leaf", "overflow")
            result = Made(is_born or holds_bad or any(one.is_bad for one in got), index, tuple(got))
        if self.is_outermost or result.maker is None:
            result = replace(result, maker=index, of=(result,) if result.maker is not None else result.of)
        self.gave[index] = result
        self.calls[index] = ModuleCall(
            index, module.name, "Block" if module.below else "Linear", parent=parent, order=self.num_ended,
            inputs=given, outputs=(self.value(result, ""),), params=(self.weight(holds_bad), weight(path="bias")),
        )  # fmt: skip
        self.num_ended += 1
        return result

    def inside(self, module: Module, index: int, scope: list[Made]) -> Made:
        """Run the code of a module that calls others."""
        plan = self.plan
        for i, child in enumerate(module.below):
            got = self.draw(st.lists(st.sampled_from(scope), min_size=1, max_size=2, unique=True))
            if plan.kind == "own code" and plan.name == module.name and plan.at == i:
                got = [Made(True, None, tuple(got))]
            elif self.has_own_code and self.draw(st.booleans()):
                got = [Made(any(one.is_bad for one in got), None, tuple(got))]
            scope.append(self.run(child, index, got))
        if plan.kind == "own code" and plan.name == module.name and plan.at == len(module.below):
            return Made(True, None, tuple(scope))
        if self.draw(st.booleans()) and (not scope[-1].is_bad or self.drops):
            return scope[-1]
        used = [one for one in scope if not (self.drops and self.draw(st.booleans()))]
        return Made(any(one.is_bad for one in used), None, tuple(used))

    def value(self, made: Made, path: str) -> Value:
        """Return a value as it is recorded."""
        return value(BAD[self.plan.what] if made.is_bad else FINE, path, made.maker, dtype="float16")

    def weight(self, is_bad: bool) -> Value:
        return weight(BAD[self.plan.what] if is_bad else FINE, dtype="float16")

    def record(self) -> PassRecord:
        """Return what was recorded."""
        return PassRecord(tuple(call for call in self.calls if call is not None))


@st.composite
def models(draw: st.DrawFn) -> Module:
    """Draw a model of up to three levels."""

    def module(name: str, depth: int) -> Module:
        num = draw(st.integers(1 if depth == 0 else 0, 3)) if depth < 3 else 0
        return Module(name, tuple(module(f"{name}.{i}" if name else str(i), depth + 1) for i in range(num)))

    return module("", 0)


@st.composite
def forwards(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[Plan, PassRecord]:
    """Draw the pass of a model with something of one of some kinds planted in it."""
    model = draw(models())
    kind = draw(st.sampled_from(kinds))
    places = [one for one in model.all() if kind in ("", "input", "weight") or bool(one.below) is (kind == "own code")]
    one = model if kind == "input" else draw(st.sampled_from(places))
    at = draw(st.integers(0, len(one.below))) if kind == "own code" else 0
    plan = Plan(kind, one.name, at, "inf" if kind == "overflow" else draw(st.sampled_from(["nan", "inf"])))
    run = Simulation(draw, plan, is_outermost=draw(st.booleans()))
    inputs = [Made(kind == "input" and i == 0, None) for i in range(draw(st.integers(1, 2)))]
    run.run(model, None, inputs)
    return plan, run.record()


@st.composite
def backwards(draw: st.DrawFn) -> tuple[Plan, PassRecord]:
    """Draw a pass, all of whose forward is finite, with a bad gradient that is born in the backward of a leaf.

    Each call takes what others gave as it is: who took what is known then.
    """
    model = draw(models())
    one = draw(st.sampled_from([one for one in model.all() if not one.below]))
    plan = Plan("backward", one.name, what=draw(st.sampled_from(["nan", "inf"])))
    run = Simulation(draw, Plan(what=plan.what), has_own_code=False, is_outermost=draw(st.booleans()))
    run.run(model, None, [Made(False, None)])
    record = run.record()
    call = next(call for call in record.calls if call.name == one.name)
    is_weight_bad = draw(st.booleans())
    bad: set[int] = set()
    stack = list(run.got[call.index])
    while stack:
        made = stack.pop()
        if id(made) not in bad:
            bad.add(id(made))
            stack.extend(made.of)
    odd, fine = figures(*BAD[plan.what]), figures(*FINE)
    calls, grads = [], []
    for each in record.calls:
        is_bad = id(run.gave[each.index]) in bad
        calls.append(
            replace(
                each, outputs=tuple(replace(v, grad=odd if is_bad else fine, grad_orders=(0,)) for v in each.outputs)
            )
        )
        # The weight of a module that calls others is bad where it was used before a call inside that got a bad one.
        inside = [one for one in record.calls if f"{one.name}.".startswith(f"{each.name}.".lstrip("."))]
        was_used = any(id(run.gave[one.index]) in bad for one in inside if one is not each) and draw(st.booleans())
        has_bad = was_used if each.class_name == "Block" else is_bad or (each.index == call.index and is_weight_bad)
        name = f"{each.name}.weight".lstrip(".")
        grads.append((each.order, Gradient(name, odd if has_bad else fine)))
    ordered = sorted(grads, key=lambda pair: -pair[0])
    told = tuple(replace(one, order=i) for i, (_, one) in enumerate(ordered))
    plan.expected = "seen" if is_weight_bad or any(id(run.gave[c.index]) in bad for c in record.calls) else ""
    return plan, PassRecord(tuple(calls), told, had_backward=True)


@st.composite
def damaged(draw: st.DrawFn) -> PassRecord:
    """Draw a pass of which anything is missing, or is odd."""
    _, record = draw(st.one_of(forwards(("leaf", "weight", "input", "own code")), backwards()))
    # Of one seed: to draw each fact by itself takes too long.
    random = draw(st.randoms(use_true_random=True))
    ends = (-INF, -5e-324, 0.0, 5e-324, 1.7e308, INF, NAN)
    dtypes = ("float16", "torch.bfloat16", "complex64", "qint8", "int64", "float8_e8m0fnu", "", "mine")
    shapes = ((), (0,), (3,), (3, 4), (2, 3, 4), (2, 3, 4, 5))
    classes = ("Linear", "Conv2d", "ConvTranspose1d", "Embedding", "LayerNorm", "BatchNorm1d", "ReLU")

    def odd(known: Figures | None) -> Figures | None:
        return random.choice([None, known, Figures(*random.choices(ends, k=4), random.choice([0, 1, 12]))])

    def value_of(one: Value) -> Value:
        return replace(
            one, figures=odd(one.figures), shape=random.choice(shapes), dtype=random.choice(dtypes), grad=odd(one.grad),
            requires_grad=random.random() < 0.5, maker=random.choice([one.maker, random.randint(-1, 40)]),
            path=random.choice(["", "[0]", one.path]),
        )  # fmt: skip

    def call_of(call: ModuleCall) -> ModuleCall:
        some = random.choice([0, 1, 2, 2])
        return replace(
            call, name=random.choice([call.name, "", "0", "layers.3", "layers.٣", "a..b", "." * 9]),
            class_name=random.choice(classes), phase=random.choice([FORWARD, RECOMPUTED]), nth=random.randint(0, 2),
            status=random.choice([RETURNED, RAISED, LEFT, STOPPED_EARLY]), order=random.choice([call.order, -1]),
            inputs=tuple(map(value_of, call.inputs[:some])), outputs=tuple(map(value_of, call.outputs[:some])),
            params=tuple(map(value_of, call.params[:some])),
        )  # fmt: skip

    calls = tuple(call_of(call) for call in record.calls if random.random() < 0.8)
    grads = tuple(replace(one, figures=odd(one.figures)) for one in record.grads)
    return PassRecord(calls, grads, random.choice(["", "RuntimeError: no"]), random.random() < 0.5)
