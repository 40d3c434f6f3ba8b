"""Findings next to the origin: one sentence each with its numbers, and none for a healthy pass."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from made import FINE, INF, NAN, block, chain, figures, gradients, leaf, line, step, value, weight
from torch import nn

import tensornp as tnp
from tensornp.passes.findings import findings_of
from tensornp.passes.records import RECOMPUTED, Gradient, PassRecord

X = torch.ones(2, 3)


def layers(norms: list[float], grads: list[float] | None = None, name: str = "layers.{}", **facts: Any) -> PassRecord:
    """Return a pass of numbered layers with norms of their outputs and gradients."""
    backs = [{"grad": FINE, "grad_norm": norm} for norm in grads or []] or [{}] * len(norms)
    calls = (
        leaf(name.format(i), "Block", norm=norm, **back, **facts)
        for i, (norm, back) in enumerate(zip(norms, backs, strict=True))
    )
    return chain(*calls, inside="Net")


def dead(*units: tuple[str, tuple[int, int, int]]) -> PassRecord:
    """Return a pass of activations with their number of dead units, of units and of positions."""
    names = [name for name, _ in units]
    nths = [names[:i].count(name) for i, name in enumerate(names)]
    return chain(*(leaf(name, "ReLU", zero_units=one, nth=nth) for (name, one), nth in zip(units, nths, strict=True)))


def held(name: str, ends: tuple[float, float]) -> Gradient:
    """Return the gradient of a parameter whose `.grad` was there before."""
    return Gradient(name, figures(FINE), 0, figures(ends))


SITUATIONS: dict[str, tuple[PassRecord, list[str]]] = {
    "growth": (
        layers([1.6**i for i in range(12)]), ["norms grow ×1.6 a layer, from 1 at layers.0 to 176 at layers.11"],
    ),
    "growth that begins late": (
        layers([3, 3.1, 3, 3.2, 3, 30, 300, 3000]),
        ["norms grow ×10 a layer, from 3 at layers.4 to 3,000 at layers.7"],
    ),
    "a gradient that vanishes": (
        layers([3.0] * 8, [1e-9 * 10**i for i in range(8)]),
        ["gradient norms fall ×0.1 a layer, from 0.01 at layers.7 to 1e-09 at layers.0"],
    ),
    "dead units": (dead(("mlp.1", (37, 512, 512))), ["37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions"]),
    "all units dead": (dead(("a", (8, 8, 64))), ["8 of 8 units of a (ReLU) were 0 at all 64 positions"]),
    "several activations": (
        dead(("a", (6, 8, 64)), ("b", (4, 8, 64))),
        ["6 of 8 units of a (ReLU) were 0 at all 64 positions; 4 of 8 units of b (ReLU) were 0 at all 64 positions"],
    ),
    "several calls": (
        dead(("a", (6, 8, 64)), ("a", (4, 8, 64))), ["4 of 8 units of a (ReLU, call 2) were 0 at all 64 positions"],
    ),
    "near the end": (
        chain(leaf("layers.8", dtype="float16"), leaf("layers.9", ends=(-40000.0, 3.0), dtype="float16"), inside="Net"),
        ["layers.9 (Linear) came within a factor of 2 of the limit of float16; the largest number was 40,000; the "
         "limit is 65,504"],
    ),
    "modules without a gradient": (
        chain(
            leaf("a"), inside="Net", grads=gradients(("a.w", FINE), ("b.0.w", None), ("b.1.w", None), ("c.w", None))
        ),
        ["3 of 4 parameters got no gradient: b, c"],
    ),
    "a model next to another": (
        block(
            leaf("one"), leaf("two"),
            grads=gradients(("one.w", FINE), ("one.b", None), ("two.w", None), ("two.b", None)),
        ),
        ["1 of 4 parameters got no gradient: one.b"],
    ),
    "a call that cut the graph": (
        chain(
            leaf("0"), leaf("1", requires_grad=False, source=line(20, "with torch.no_grad():")), leaf("2"),
            inside="Net", grads=gradients(("2.weight", FINE), ("0.weight", None)),
        ),
        ["1 of 2 parameters got no gradient: 0; 1 (Linear) returned a tensor without a gradient, model.py:20 `with "
         "torch.no_grad():`"],
    ),
    "a step without gradients": (
        chain(leaf("fc"), steps=[step(2), step(2, num_with_gradient=0), step(3, num_with_gradient=0)]),
        ["a step of Adam began without gradients, model.py:30 `optimizer.step()`; `.grad` was None for each of its 2 "
         "parameters"],
    ),
    "gradients that were added": (
        chain(leaf("fc"), grads=[held("a", (-1.0, 1.0)), held("b", (NAN, NAN)), held("c", (0.0, 0.0))]),
        ["`.grad` of 2 parameters was not empty when a gradient came; the gradient was added to it: a, b"],
    ),
    "a buffer": (
        chain(leaf("0", "Codebook"), buffers={"0.embed": (1, value((NAN,), relation="buffer"))}),
        ["0.embed contains NaN after this pass"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_finding_is_one_sentence(name: str):
    record, sentences = SITUATIONS[name]
    assert [str(one) for one in findings_of(record)] == sentences


HEALTHY: dict[str, PassRecord] = {
    "nothing": block(),
    "norms that stay": layers([3.0, 3.3, 2.9, 3.5, 3.1, 3.0]),
    "growth by little": layers([1.3**i for i in range(12)]),
    "growth over few layers": layers([1.0, 1.6, 2.5, 4.0]),
    "layers of several shapes": chain(*(leaf(f"layers.{i}", norm=9.0**i, shape=(i + 1, 2)) for i in range(6))),
    "norms that are not finite": layers([1.0, NAN, INF, 0.0, NAN, INF]),
    "few positions": dead(("a", (8, 8, 31))),
    "few dead units": dead(("a", (4, 100, 64))),
    "units alive in another call": dead(("a", (6, 8, 64)), ("a", (0, 8, 64))),
    "float32": chain(leaf("fc", ends=(0.0, 40000.0))),
    "no backward": block(grads=gradients(("fc.weight", None))),
    "a gradient that is held at the end": chain(
        leaf("a"), grads=[*gradients(("a.w", FINE)), Gradient("a.b", is_held_at_end=True)]
    ),
    "a gradient that was not read": chain(
        leaf("a"), grads=[*gradients(("a.w", FINE)), Gradient("a.b", note="a shard")]
    ),
    "indices": chain(leaf("fc"), leaf("argmax", "Argmax", dtype="int64", requires_grad=False)),
    "a mask among buffers": chain(leaf("a"), buffers={"a.mask": (1, value((-INF, 0.0), relation="buffer"))}),
    "recomputed": chain(leaf("fc"), leaf("fc", phase=RECOMPUTED, nth=1)),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pass_has_no_findings(name: str):
    assert findings_of(HEALTHY[name]) == []


def test_of_a_layer_and_its_parts_that_grow_alike_the_layer_is_named():
    calls = []
    for i in range(6):
        y = value(norm=4.0**i)
        calls.append(leaf(f"layers.{i}", "Block", outputs={"": y}))
        calls.append(leaf(f"layers.{i}.fc", outputs={"": y}, parent=2 * i + 1))
    (finding,) = findings_of(block(*calls))
    assert finding.fact == "norms grow ×4 a layer, from 1 at layers.0 to 1,024 at layers.5"
    assert finding.call == 1


def test_findings_stand_in_one_order():
    calls = [
        leaf("0", params={"weight": weight((NAN,))}, ends=(NAN,)),
        leaf("1", "ReLU", (NAN,), zero_units=(8, 8, 64)),
        leaf("2", ends=(0.0, 60000.0), dtype="float16"),
        leaf("3", ends=(NAN,)),
    ]
    record = chain(
        *calls, inside="Net", error="ValueError: no", steps=[step(2, num_with_gradient=0)],
        grads=[held("3.weight", FINE), Gradient("3.bias")], buffers={"0.embed": (2, value((NAN,)))},
    )  # fmt: skip
    found = findings_of(record)
    kinds = ["failed", "nan", "idle step", "added", "no gradient", "near the end", "dead units", "buffer"]
    assert [one.kind for one in found] == kinds
    assert pickle.loads(pickle.dumps(found)) == found


class Experts(nn.Module):
    """A model that calls one expert, and may use the weights of another in its own code."""

    def __init__(self, *, is_second_used: bool) -> None:
        super().__init__()
        self.ex = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(3))
        self.head, self.is_second_used = nn.Linear(3, 2), is_second_used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.ex[0](x)
        return self.head(self.ex[1][0].forward(x) if self.is_second_used else x)


@pytest.mark.parametrize("is_second_used", [False, True])
def test_modules_without_a_call_are_named(is_second_used: bool):
    """Also if the gradients were removed after the step."""
    model = Experts(is_second_used=is_second_used)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tnp.follow() as run:
        model(X).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    named = "2 of 8 parameters got no gradient: ex.2" if is_second_used else "4 of 8 parameters got no gradient: ex.1, "
    assert any(one.startswith(named) for one in run.problems)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer, to_none: bool | None = True) -> None:
    """Train for one step; gradients stay as they are if `to_none` is None."""
    if to_none is not None:
        optimizer.zero_grad(set_to_none=to_none)
    model(X).sum().backward()
    optimizer.step()


def by_closure(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train by a closure that computes the gradients inside of the step."""

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(X).square().sum()
        loss.backward()
        return loss

    optimizer.zero_grad()
    optimizer.step(closure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "optimizer", "kinds"),
    [
        (lambda model, optimizer: step_of(model, optimizer, None), torch.optim.SGD, ["added"]),
        (step_of, torch.optim.SGD, []),
        (step_of, torch.optim.Adam, []),
        (lambda model, optimizer: step_of(model, optimizer, False), torch.optim.SGD, []),
        (lambda model, optimizer: [step_of(model, optimizer, None) for _ in range(2)], torch.optim.SGD, ["added"]),
        (lambda model, optimizer: (optimizer.zero_grad(), optimizer.step()), torch.optim.SGD, ["idle step"]),
        (lambda _, optimizer: torch.optim.SGD(net().parameters(), 0.1).step(), torch.optim.SGD, ["idle step"]),
        (by_closure, torch.optim.LBFGS, []),
    ],
    ids=["added", "zeroed", "Adam", "zeros", "twice", "no backward", "another model", "closure"],
)
def test_steps_and_gradients_of_a_training_are_checked(program: Any, optimizer: Any, kinds: list[str]):
    """The first backward, whose gradients stay, comes before the block."""
    model = net()
    made = optimizer(model.parameters(), lr=0.01)
    model(X).sum().backward()
    with tnp.follow(model) as run:
        program(model, made)
    assert [one.kind for one in run.findings] == kinds


def test_dead_units_are_counted_over_calls():
    """A unit that is alive in one call is not dead."""
    model = nn.Sequential(nn.Linear(4, 20, bias=False), nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(-1)
        model[0].weight[:16] = 1
    x = torch.rand(64, 4, generator=torch.Generator().manual_seed(0))
    for other, facts in ((x, ["4 of 20 units of 1 (ReLU) were 0 at all 64 positions"]), (x - 0.5, [])):
        with tnp.follow(model) as run:
            model(x)
            model(other)
        assert [one.fact for one in run.findings if one.kind == "dead units"] == facts


def test_dead_channels_are_counted_behind_convolutions():
    """Channels stand on axis 1 of rows and of images."""
    for conv, shape in ((nn.Conv1d, (4, 3, 32)), (nn.Conv2d, (4, 3, 8, 8))):
        model = nn.Sequential(conv(3, 10, 3), nn.ReLU())
        with torch.no_grad():
            model[0].weight.fill_(1)
            model[0].weight[4:] = -1
            model[0].bias.zero_()
        with tnp.follow(model) as run:
            model(torch.rand(shape))
        [found] = [one for one in run.findings if one.kind == "dead units"]
        assert found.fact.startswith("6 of 10 units of 1 (ReLU) were 0 at all")
