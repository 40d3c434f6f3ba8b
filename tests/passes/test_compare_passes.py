"""Two passes side by side: the first call that differs, and pairs of calls under other names."""

from __future__ import annotations

import copy
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


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.optim.swa_utils.AveragedModel])
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


def test_a_pass_is_compared_only_with_a_pass():
    model = mlp()
    run = run_of(model)
    for a, b in ((run, model), (model, run), (run, None)):
        with pytest.raises(tnp.BadRequestError):
            tnp.compare(a, b)
    with pytest.raises(tnp.BadRequestError, match="not over"):
        tnp.compare(run, tnp.follow(model))
