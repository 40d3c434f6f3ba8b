"""Two passes side by side: the first call that differs, and pairs of calls under other names."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from made import FINE, NAN, block, chain, gradients, leaf, value
from torch import nn

import tensornp as tnp
from tensornp.passes.compare import PassComparison, compared

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))


def run_of(*models: nn.Module, level: str = "modules", loss: Any = torch.mean, **names: nn.Module) -> tnp.FollowedPass:
    """Follow a forward through some models, and a backward."""
    with tnp.follow(level=level, namespace=names) as run:
        out = X
        for model in models:
            out = model(out)
        loss(out.square()).backward()
    for model in models:
        model.zero_grad()
    return run


def mlp() -> nn.Sequential:
    """Return a model of five calls."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_two_passes_of_one_model_are_equal(level: str):
    model = mlp()
    found = tnp.compare(run_of(model, level=level), run_of(model, level=level))
    assert isinstance(found, PassComparison)
    assert found.equal
    assert found.first is None
    assert found.num_calls >= 6
    assert not found.problems
    assert found.num_unread == 0


def test_a_weight_that_moved_is_reported_with_the_call_it_changed():
    model, other = mlp(), mlp()
    with torch.no_grad():
        other[2].weight[0, 0] += 1
    found = tnp.compare(run_of(model), run_of(other))
    assert found.first is not None
    assert found.first.call.name == "2"
    assert (found.first.inputs_equal, found.first.weights_equal) == (True, False)
    assert list(found.weights) == ["2.weight"]
    assert [one.call.title for one in found.calls] == ["2 (Linear)", "3 (ReLU)", "4 (Linear)", "Sequential"]
    assert "2 (Linear), " in found.problems[0]
    assert found.problems[1].startswith("1 weight differed when first read: 2.weight")


def test_the_first_operator_that_differs_is_found():
    class Cell(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).mul(self.factor).tanh().requires_grad_()

    first = tnp.compare(*(run_of(Cell(factor), level="operators") for factor in (2.0, 3.0))).first
    assert first is not None
    assert first.call.name == "mul"


DIFFERENCES = {
    "shape": (leaf("b", shape=(3, 5)), "(3, 4) float32 and (3, 5) float32"),
    "dtype": (leaf("b", dtype="float16"), "(3, 4) float32 and (3, 4) float16"),
    "NaN": (leaf("b", ends=(NAN,)), "finite and NaN"),
    "number": (leaf("b", outputs={}), "1 tensor and 0 tensors"),
    "norm": (leaf("b", norm=3.3), "norm 3 and 3.3"),
    "sample": (leaf("b", outputs={"": value(sample=(1.0,), maker=2)}), "other elements with the same statistics"),
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_a_difference_is_described_with_both_sides(kind: str):
    call, text = DIFFERENCES[kind]
    first = compared(chain(leaf("a"), leaf("b")), chain(leaf("a"), call)).first
    assert first is not None
    assert (first.call.name, first.difference.text) == ("b", text)


def test_unread_outputs_are_counted():
    unread = block(leaf("a", ends=None))
    nans = chain(leaf("a"), leaf("b", ends=(NAN,)))
    assert compared(nans, nans).equal
    found = compared(unread, unread)
    assert (found.equal, found.num_unread, found.problems) == (False, 2, ())
    assert found.verdict == "statistics are equal; 2 outputs without statistics"


def test_calls_of_one_side_are_named():
    first, second = chain(leaf("a"), leaf("b"), leaf("c")), chain(leaf("a"), leaf("c"))
    found = compared(first, second)
    assert (found.equal, found.verdict) == (False, "other calls")
    assert found.problems == ("1 call in the first alone: b (Linear)",)
    assert compared(second, first).problems == ("1 call in the second alone: b (Linear)",)


def test_other_gradients_are_reported_in_their_order():
    model = mlp()
    found = tnp.compare(run_of(model), run_of(model, loss=torch.sum))
    assert not found.calls
    assert found.verdict == "other gradients"
    assert next(iter(found.grads)).startswith("4.")
    assert found.problems[0].startswith("6 parameters got another gradient: 4.")
    records = [chain(leaf("a"), grads=gradients(("a.weight", ends))) for ends in (FINE, None)]
    assert compared(*records).grads["a.weight"].text == "a gradient in the first alone"
    assert compared(*reversed(records)).grads["a.weight"].text == "a gradient in the second alone"


class Wrapper(nn.Module):
    """A model around another one."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call it."""
        return self.module(x)


@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, torch.optim.swa_utils.AveragedModel, lambda net: Wrapper(Wrapper(net))]
)
def test_a_wrapped_model_is_compared_with_the_model_inside(wrap: Callable[[nn.Module], nn.Module]):
    model = mlp()
    wrapped = wrap(copy.deepcopy(model))
    for runs in ((run_of(model), run_of(wrapped)), (run_of(wrapped), run_of(model))):
        found = tnp.compare(*runs)
        assert (found.num_calls, found.calls, found.weights, found.grads) == (6, (), {}, {})
        assert len(found.problems) == 1
        assert type(wrapped).__name__ in found.problems[0]
    with torch.no_grad():
        wrapped.get_parameter([name for name, _ in wrapped.named_parameters()][2])[0] += 1
    assert list(tnp.compare(run_of(model), run_of(wrapped)).weights) == ["2.weight"]


def test_single_roots_are_compared_whatever_their_names():
    model = mlp()
    one, other = run_of(model, first=model), run_of(nn.Sequential(model)[0], second=model)
    assert tnp.compare(one, other).equal


def _model(rng: random.Random, depth: int = 3) -> nn.Module:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6), nn.GELU()])
    return nn.Sequential(*(_model(rng, depth - 1) for _ in range(rng.randint(1, 4))))


class Off(nn.Module):
    """A leaf whose results are a little too large."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = [inner]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result plus 0.001."""
        return self.inner[0](x) + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_planted_difference_is_found_in_any_model(seed: int, monkeypatch: pytest.MonkeyPatch):
    """The first call that differs is the leaf with the difference, with equal inputs, named by both classes."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(*(_model(rng) for _ in range(3)))
    other = copy.deepcopy(model)
    name = rng.choice([name for name, module in other.named_modules() if name and not list(module.children())])
    above, _, last = name.rpartition(".")
    other.get_submodule(above)[int(last)] = Off(other.get_submodule(name))
    monkeypatch.setitem(globals(), "X", torch.randn(7, 6))
    found = tnp.compare(run_of(model), run_of(other))
    assert found.first is not None
    assert (found.first.call.name, found.first.inputs_equal) == (name, True)
    assert found.first.title.endswith(", Off in the second")


def test_a_pass_is_compared_only_with_a_pass():
    model = mlp()
    run = run_of(model)
    for a, b in ((run, model), (model, run), (run, None)):
        with pytest.raises(tnp.BadRequestError):
            tnp.compare(a, b)
    with pytest.raises(tnp.BadRequestError, match="not over"):
        tnp.compare(run, tnp.follow(model))
