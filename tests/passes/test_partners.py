"""Two passes in which one model has two names: alone, beside another one, or in a wrapper."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import tensornp as tnp

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))


class Wrapper(nn.Module):
    """What calls a model and does nothing else."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


def _net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Tanh()))


def _followed(*models: nn.Module, **names: nn.Module) -> tnp.FollowedPass:
    with tnp.follow(namespace=names) as run:
        out = X
        for model in models:
            out = model(out)
        out.square().sum().backward()
    for model in models:
        model.zero_grad()
    return run


@pytest.mark.parametrize(
    "wrap", [Wrapper, nn.DataParallel, torch.optim.swa_utils.AveragedModel, lambda net: Wrapper(Wrapper(net))]
)
def test_a_wrapped_model_is_compared_with_what_it_wraps(wrap: Callable[[nn.Module], nn.Module]):
    """Whichever comes first; the wrapper alone has no partner."""
    net = _net()
    wrapped = wrap(copy.deepcopy(net))
    runs = _followed(net), _followed(wrapped)
    for sides, side in ((runs, "second"), (runs[::-1], "first")):
        found = tnp.compare(*sides)
        assert found.num_calls == 6 and not found.calls and not found.grads
        assert len(found.problems) == 1 and f"in the {side} alone: {type(wrapped).__name__}" in found.problems[0]
    with torch.no_grad():
        wrapped.get_parameter([name for name, _ in wrapped.named_parameters()][2])[0] += 1
    runs = runs[0], _followed(wrapped)
    assert list(tnp.compare(*runs).weights) == ["2.0.weight"]
    (name,) = tnp.compare(*runs[::-1]).weights
    assert name.endswith(".2.0.weight")


def test_a_model_alone_is_compared_with_itself_beside_others():
    """By its expression, where others of its class are there."""
    torch.manual_seed(0)
    names = {"first": nn.Linear(4, 4), "second": nn.Linear(4, 4), "loss": nn.Tanh()}
    first, second, loss = names.values()
    alone, beside = _followed(second, loss, **names), _followed(first, second, loss, **names)
    assert [call.name for call in alone.calls] == ["", "loss"]
    for runs, side in (((alone, beside), "second"), ((beside, alone), "first")):
        found = tnp.compare(*runs)
        assert found.num_calls == 2 and found.first is not None and found.first.call.code == "second"
        assert (
            f"its inputs had differed, and 1 call before it is in the {side} alone: first (Linear)" in found.problems[0]
        )
        assert not any("second.weight" in text and "alone" in text for text in found.problems)


def test_which_of_two_that_fit_is_not_guessed():
    """Nothing tells to which of them the one belongs."""
    nets = [_net() for _ in range(3)]
    runs = _followed(nets[0]), _followed(*nets[1:], a=nets[1], b=nets[2])
    assert tnp.compare(*runs).num_calls == 0


def test_models_of_other_names_are_paired_where_each_has_one_of_its_build():
    """By names, classes and shapes: of two layers of one class, the shapes tell."""
    torch.manual_seed(0)
    nets = {"encoder": _net(), "head": nn.Linear(4, 2), "tail": nn.Linear(2, 4)}
    others = {f"{name}_copy": copy.deepcopy(net) for name, net in nets.items()}
    runs = _followed(*nets.values(), **nets), _followed(*others.values(), **others)
    assert tnp.compare(*runs).equal
    with torch.no_grad():
        others["head_copy"].bias.add_(1)
    found = tnp.compare(runs[0], _followed(*others.values(), **others))
    assert found.num_calls == 8 and list(found.weights) == ["head.bias"]
