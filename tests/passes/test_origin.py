"""The origin of the first NaN or Inf: programs and records with one fault, and healthy ones without a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from made import FINE, INF, NAN, block, chain, gradients, leaf, line, value, weight
from torch import nn
from torch.utils.checkpoint import checkpoint

import tensornp as tnp
from tensornp.passes.findings import findings_of
from tensornp.passes.origin import origin_of
from tensornp.passes.records import PassRecord, Step

MASK = (-INF, 0.0)
BOUND = torch.full((4,), INF)
X = torch.ones(2, 4)
MODULES, OPERATORS = "modules", "operators"
PRODUCED = "NaN was first produced in "
Fault = Callable[[torch.Tensor], torch.Tensor]


class Layer(nn.Module):
    """A layer with a place for a fault in its own code."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fc, self.fault, self.out = nn.Linear(4, 4), fault, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.fault(self.fc(x))
        return x + self.out(h)  # the call of out


def net(fault: Fault = lambda h: h) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Layer(lambda h: h), Layer(fault), Layer(lambda h: h))


def masked_softmax(h: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros(2, 4, dtype=torch.bool)
    mask[1] = True
    scores = h.masked_fill(mask, -INF)
    return scores.softmax(-1)  # here


def step_of(model: nn.Module, loss_of: Fault, rate: float = 0.1, times: int = 1) -> torch.Tensor:
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for _ in range(times):
        optimizer.zero_grad()
        loss = loss_of(model(X))
        loss.backward()
        optimizer.step()  # the step
    return loss


def after_a_fault(fault: Fault) -> Callable[[], Any]:
    return lambda: net(fault)(X).sum().backward()


def in_the_cell() -> torch.Tensor:
    return torch.log(net()(X) - 100).mean()


BAD_WEIGHT, LINEAR = net(), nn.Linear(4, 1)
BAD_WEIGHT[1].out.weight.data[0, 0] = NAN


def bad_input() -> torch.Tensor:
    return net()(torch.tensor([[1.0, NAN, 1.0, 1.0]]))


def overflow() -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)), nn.LayerNorm(64))
    for layer in list(model)[:4]:
        layer.weight.data *= 24
    return model.half()(torch.randn(32, 64).half())


class Checkpointed(nn.Module):
    """A layer that is recomputed in the backward, and then gives NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.is_first = nn.Linear(4, 4), True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_first, self.is_first = self.is_first, False
        return (self.fc(x).abs() * (1 if is_first else -1)).sqrt()


def recomputed() -> None:
    checkpoint(Checkpointed(), X.clone().requires_grad_(), use_reentrant=True).sum().backward()


def root_of_zero(h: torch.Tensor) -> torch.Tensor:
    """Return 0 by a root, whose slope is infinite there."""
    return (h * 0).sqrt() * 0  # here


def masked_root(h: torch.Tensor) -> torch.Tensor:
    return torch.where(h > 0, h.sqrt(), torch.zeros_like(h))  # here


def loss_without_spread(y: torch.Tensor) -> torch.Tensor:
    return (y - y.detach()).square().mean().sqrt()  # here


def no_label(y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(y, torch.tensor([-100, -100]))  # here


def second_backward() -> None:
    """Run four steps; the second has a gradient that is NaN, and spoils a part of the weights."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model[1].parameters(), 0.1)
    for i in range(4):
        model.zero_grad()
        (loss_without_spread if i == 1 else torch.mean)(model(X)).backward()
        optimizer.step()


PROGRAMS: dict[str, tuple[Callable[[], Any], str, str, str, str]] = {
    # name: (program, level, fact, explanation, text of the line)
    "log": (after_a_fault(torch.log), OPERATORS, PRODUCED + "1 (Layer), at `log`, ", "its input ranged from -", ""),
    "softmax": (
        after_a_fault(masked_softmax), OPERATORS, PRODUCED + "1 (Layer), at `softmax`, ",
        "1 row of its input was −Inf throughout (`masked_fill`, test_origin.py:", "return scores.softmax(-1)  # here",
    ),
    "in place": (after_a_fault(lambda h: h.mul(1).log_()), OPERATORS, PRODUCED + "1 (Layer), at `log_`", "", ""),
    "an argument": (
        after_a_fault(lambda h: h.masked_fill(h > -9, NAN)), OPERATORS,
        "NaN was an argument of `masked_fill` in 1 (Layer)", "", "",
    ),
    "Inf minus Inf": (
        after_a_fault(lambda h: (h.exp() * 0 + INF) - INF), OPERATORS, PRODUCED + "1 (Layer), at `sub`",
        "its input was Inf throughout", "",
    ),
    "own code": (
        after_a_fault(torch.log), MODULES,
        "NaN first appeared in the code of 1 (Layer), before it called 1.out (Linear)", "",
        "return x + self.out(h)  # the call of out",
    ),
    "the cell": (in_the_cell, MODULES, "NaN first appeared in the cell, outside of all modules", "", ""),
    "the cell, by operator": (in_the_cell, OPERATORS, PRODUCED + "the cell, at `log`", "ranged from -", "torch.log("),
    "a weight": (lambda: BAD_WEIGHT(X), MODULES, "1.out.weight contained NaN when 1.out (Linear) was called", "", ""),
    "an input": (bad_input, MODULES, "input [0] of Sequential contained NaN", "no followed call returned it", "net()("),
    "float16": (
        overflow, MODULES, "Inf was first produced in ", "it left the range of float16 (65,504); its inputs", "",
    ),
    "a step": (
        lambda: step_of(net(), lambda y: y.square().sum(), 1e38, 3), MODULES,
        " when 0.fc (Linear, call 2) was called", "it was finite at the call before, and a step of SGD came between",
        "optimizer.step()  # the step",
    ),
    "the last step": (
        lambda: step_of(LINEAR, lambda y: y.sum() * 2, 3e38), MODULES, "weight contained −Inf after this pass",
        "and a step of SGD came between", "optimizer.step()  # the step",
    ),
    "a checkpoint": (
        recomputed, OPERATORS, " as a checkpoint recomputed it", "",
        "return (self.fc(x).abs() * (1 if is_first else -1)).sqrt()",
    ),
    "a root": (
        after_a_fault(root_of_zero), OPERATORS, PRODUCED + "the backward of `sqrt` in 1 (Layer)",
        "the input of `sqrt` was 0 throughout", "return (h * 0).sqrt() * 0  # here",
    ),
    "a root, by modules": (after_a_fault(root_of_zero), MODULES, "NaN entered the gradients between 1.out", "", ""),
    "a masked root": (after_a_fault(masked_root), OPERATORS, PRODUCED + "1 (Layer), at `sqrt`", "backward read it", ""),
    "masked steps": (lambda: step_of(net(masked_root), torch.sum, 0.1, 4), MODULES, "gradients between 1.out", "", ""),
    "log of 0": (lambda: (0 * X.clone().requires_grad_()).log().mean(), OPERATORS, "in the cell, at `log`", "", ""),
    "no label": (lambda: no_label(net()(X)).backward(), OPERATORS, "in the cell, at `nll_loss_forward`", "", "# here"),
    "the loss": (
        lambda: loss_without_spread(net()(X)).backward(), MODULES, "the first gradient, of 2 (Layer), contained NaN",
        "it came from code after 2 (Layer), outside of all modules", "",
    ),
    "the loss, by operator": (
        lambda: loss_without_spread(net()(X)).backward(), OPERATORS, "in the backward of `sqrt`, test_origin.py",
        "was 0 throughout", "return (y - y.detach()).square().mean().sqrt()  # here",
    ),
    "a gradient before a step, by operator": (second_backward, OPERATORS, "in the backward of `sqrt`", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_origin_of_a_program_is_reported(name: str):
    program, level, fact, explanation, text = PROGRAMS[name]
    with tnp.follow(level=level) as run:
        result = program()
    del result
    origin = run.origin
    assert origin is not None
    assert fact in origin.fact
    assert explanation in origin.explanation
    if origin.source is not None:
        assert origin.source.file == __file__
        assert text in origin.source.text


def reused_memory(h: torch.Tensor) -> torch.Tensor:
    memory = torch.empty(2, 4)
    memory.copy_(torch.full((2, 4), NAN))
    memory.zero_()
    memory[:, :2] = h[:, :2].detach()
    return h + memory


def masked_by_index(h: torch.Tensor) -> torch.Tensor:
    """Return the softmax behind masks that are written by indices."""
    mask = torch.zeros(4)
    mask[3:] = -INF
    scores = h + mask
    scores[:, 2] = -INF
    return scores.softmax(-1)


FINE_FAULTS: dict[str, Fault] = {
    "where": lambda h: torch.where(h > 0, torch.log(h), torch.zeros(())),
    "dropped": lambda h: (torch.log(h), h)[1],
    "mask": lambda h: h.masked_fill(h > 0, -INF).softmax(-1),
    "filled": lambda h: torch.empty(2, 4).fill_(1) * h,
    "copied": lambda h: h.new_empty(h.shape).copy_(h),
    "clamped": lambda h: torch.full((4,), INF).clamp(max=1) * h,
    "reused": reused_memory,
    "by index": masked_by_index,
    "like": lambda h: torch.full_like(h, -INF).scatter(1, *h.topk(2)[::-1]).softmax(-1),
    "a tensor": lambda h: torch.where(h > 0, h, torch.tensor(-INF)).softmax(-1),
    "a bound": lambda h: torch.minimum(h, BOUND),
}


@pytest.mark.parametrize("level", [MODULES, OPERATORS])
@pytest.mark.parametrize("name", FINE_FAULTS)
def test_numbers_that_reach_no_result_are_not_reported(name: str, level: str):
    """NaN that is masked, dropped or overwritten before a read; infinities among the arguments."""
    model = net(FINE_FAULTS[name])
    with tnp.follow(level=level) as run:
        model(X).sum().backward()
    assert run.origin is None


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.where(X > 9, (X - 9).log(), X).sum(), lambda: X / 0, lambda: (X - 9).log().zero_() + 1,
        lambda: torch.zeros(3, requires_grad=True).norm().backward(),
        lambda: torch.ones(2, requires_grad=True).mul(1).add(torch.tensor([0.0, -INF])).logsumexp(0).backward(),
    ],
)  # fmt: skip
def test_numbers_of_the_cell_that_reach_no_result_are_not_reported(program: Callable[[], Any]):
    """NaN that a later operator masks or overwrites, in a backward too; Inf without a gradient that nobody reads."""
    with tnp.follow(level=OPERATORS) as run:
        program()
    assert run.origin is None


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_nan_without_gradients_is_reported(context: Callable[[], Any]):
    model = net(torch.log)
    with context(), tnp.follow(level=OPERATORS) as run:
        model(X)
    assert run.origin is not None
    assert "at `log`" in run.origin.fact


def test_a_nan_outside_of_the_followed_modules_is_not_outside_of_all():
    """Another model may have made it."""
    with tnp.follow(nn.Linear(4, 3)) as run:
        loss = nn.Linear(4, 3)(X * NAN).sum()
        loss.backward()
    assert run.origin is not None
    assert run.origin.fact.endswith("outside of the followed modules")


@pytest.mark.parametrize(("rate", "is_forward"), [(1.0, True), (0.1, False)])
def test_a_loop_that_diverges_is_reported_by_the_range_it_left(rate: float, is_forward: bool):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer, x = torch.optim.SGD(model.parameters(), rate), torch.randn(64, 16) * 5
    with tnp.follow(model) as run:
        for _ in range(6):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) * 10).backward()
            optimizer.step()
    assert run.origin is not None
    assert ("gradient" in run.origin.fact) is not is_forward


def test_a_step_by_hand_is_looked_behind():
    """The gradient that made a weight NaN is the origin, not the weight's next call."""
    model = net()
    with tnp.follow() as run:
        for _ in range(2):
            loss_without_spread(model(X)).backward()
            with torch.no_grad():
                for one in model.parameters():
                    one.sub_(one.grad if one.grad is not None else 0)
    assert run.origin is not None
    assert run.origin.fact.startswith("the first gradient, of 2 (Layer), contained NaN")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("bad", [(0,), (1,), (0, 1)])
def test_the_first_backward_of_two_losses_is_reported(bad: tuple[int, ...], order: tuple[int, ...]):
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 2)
    with tnp.follow() as run:
        results = [actor(X), critic(X)]
        losses = [(loss_without_spread if i in bad else torch.mean)(one) for i, one in enumerate(results)]
        for i in order:
            losses[i].backward()
    first = next(i for i in order if i in bad)
    assert run.origin is not None
    assert run[run.origin.call].outputs[""].shape == ((2, 3), (2, 2))[first]


def after_the_last() -> PassRecord:
    """Return the pass of a model with NaN made of the results of its modules."""
    x = value()
    outer = leaf("", "Net", inputs={"[0]": x}, outputs={"": value((NAN,), maker=1)})
    return block(outer, leaf("fc", inputs={"[0]": x}, outputs={"": value(maker=2)}, parent=1, source=line(9, "fc(x)")))


def backs(*grads: tuple[float, ...], **facts: Any) -> PassRecord:
    """Return a pass of three calls, whose gradients came from the last to the first."""
    calls = (leaf(f"fc{i}", grad=grad, grad_order=9 - i) for i, grad in enumerate(grads, 1))
    return chain(*calls, **facts)


def spoilt(ends: tuple[float, ...], **facts: Any) -> PassRecord:
    """Return a pass of two calls between which a weight became odd."""
    return chain(leaf("fc"), leaf("fc", ends=(NAN,), params={"weight": weight(ends)}, nth=1), **facts)


SITUATIONS: dict[str, tuple[PassRecord, str, str]] = {
    "own code after all calls": (
        after_the_last(), "NaN first appeared in the code of Net, after it called fc (Linear), model.py:9 `fc(x)`",
        "no module inside returned it",
    ),
    "a leaf": (
        chain(leaf("0"), leaf("norm", "LayerNorm", (NAN,), source=line(7, "h = self.norm(h)")), inside="Net"),
        PRODUCED + "norm (LayerNorm), model.py:7 `h = self.norm(h)`", "its input ranged from -1 to 2",
    ),
    "two inputs": (
        chain(leaf("add", "Add", (NAN,), inputs={"[0]": value(), "[1]": value((-3.0, 4.0))})),
        PRODUCED + "add (Add)", "its inputs: -1 to 2 and -3 to 4",
    ),
    "a gradient before the step": (
        chain(
            leaf("fc", grad=(NAN,)),
            leaf("fc", ends=(NAN,), params={"weight": weight((NAN,))}, nth=1, grad=(NAN,), grad_order=5),
            steps=[Step("SGD", None, 2, 1, 1)],
        ),
        "the first gradient, of fc (Linear), contained NaN",
        "it came from code after fc (Linear), outside of all modules",
    ),
    "a loss in a later step": (
        chain(
            leaf("fc", grad=(1.0,)), leaf("fc", nth=1, grad=(NAN,), grad_order=5),
            steps=[Step("SGD", None, 2, 1, 1), Step("SGD", None, 3, 1, 1)],
        ),
        "the first gradient, of fc (Linear, call 2), contained NaN",
        "it came from code after fc (Linear, call 2), outside of all modules",
    ),
    "Inf under no_grad that makes NaN": (
        chain(leaf("mlp", ends=(0.0, INF), dtype="float16", requires_grad=False), leaf("norm", "LayerNorm", (NAN,))),
        "Inf was first produced in mlp (Linear)", "it left the range of float16 (65,504); its inputs reached 2",
    ),
    "a gradient between calls": (
        backs((NAN,), FINE, FINE), "NaN entered the gradients between fc2 (Linear) (finite) and fc1 (Linear)", "",
    ),
    "an infinite gradient behind a scaler": (
        backs((-INF, INF), FINE, FINE, scaler=("scaler", 65536.0)), "Inf entered the gradients between fc2 (Linear)",
        "scaler (scale 65,536) skips a step with such gradients",
    ),
    "NaN behind a scaler": (backs((NAN,), FINE, FINE, scaler=("scaler", 65536.0)), "NaN entered the gradients", ""),
    "parameters alone": (
        chain(leaf("fc"), grads=gradients(("c.weight", FINE), ("b.weight", (NAN,)), ("a.weight", (NAN,)))),
        "NaN entered the gradients between c.weight (finite) and b.weight", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_origin_is_one_fact_and_one_explanation(name: str):
    record, fact, explanation = SITUATIONS[name]
    origin = origin_of(record)
    assert origin is not None
    assert origin.fact.startswith(fact)
    assert explanation in origin.explanation
    assert bool(explanation) or not origin.explanation or fact.startswith(PRODUCED)
    assert origin.kind in ("nan", "inf")
    assert findings_of(record)[0] == origin


HEALTHY: dict[str, PassRecord] = {
    "a mask among buffers": chain(leaf("attn", params={"mask": value(MASK, relation="buffer")})),
    "a mask as the result": chain(leaf("mask", "Mask", MASK)),
    "an infinite result without a gradient": chain(leaf("bound", "Bound", (0.0, INF), requires_grad=False)),
    "a weight without a use": chain(leaf("emb", "Embedding", params={"weight": weight((NAN,))})),
    "a finite backward": chain(leaf("fc", grad=FINE), grads=gradients(("fc.weight", FINE), ("fc2.weight", None))),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pass_has_no_origin(name: str):
    assert origin_of(HEALTHY[name]) is None
