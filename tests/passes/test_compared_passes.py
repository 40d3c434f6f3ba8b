"""Two passes side by side: where they began to differ, and whether the difference was born there."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from made_passes import NAN, chain, gradients, leaf, one_call, value, with_grads
from torch import nn

import tensornp as tnp
from tensornp.passes.records import RAISED, PassRecord
from tensornp.passes.verdict.comparison import PassComparison, compared


def run_of(model: nn.Module, x: torch.Tensor, loss: Any = lambda out: out.square().mean()) -> Any:
    """Follow a forward and a backward."""
    model.zero_grad()
    with tnp.follow(model) as run:
        loss(model(x)).backward()
    return run


def mlp(seed: int = 0) -> nn.Sequential:
    """Return a model of five calls."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


X = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))


def test_two_runs_of_one_model_have_equal_figures():
    """Also in what came back; nothing more is claimed."""
    model = mlp()
    found = tnp.compare(run_of(model, X), run_of(model, X))
    assert isinstance(found, PassComparison)
    assert found.equal and found.verdict == "figures equal" and found.first is None and not found.problems
    assert found.num_calls == 6 and not found.num_unread
    assert "same" not in tnp.card(found).text and "equal" in tnp.card(found).text


def test_a_weight_that_moved_is_told_and_the_call_that_it_changed():
    """The first in the order of return, not the model around it."""
    model, other = mlp(), mlp()
    with torch.no_grad():
        other[2].weight[0, 0] += 1
    found = tnp.compare(run_of(model, X), run_of(other, X))
    assert not found.equal and found.first is not None
    assert found.verdict == "the first call that differs is 2 (Linear)"
    assert found.first.call.name == "2" and found.first.inputs_equal and found.first.weights_equal is False
    assert not found.first.is_born_here
    assert list(found.weights) == ["2.weight"]
    assert "its weight had differed before" in found.problems[0]
    assert found.problems[1].startswith("1 weight differed before: 2.weight")
    assert [one.call.title for one in found.calls] == ["2", "3", "4", "Sequential"]


def test_a_difference_is_born_where_the_inputs_were_equal():
    """An activation that is another one."""
    model, other = mlp(), mlp()
    other[1] = nn.Tanh()
    found = tnp.compare(run_of(model, X), run_of(other, X))
    assert found.first is not None and found.first.call.name == "1" and found.first.is_born_here
    assert "its inputs were equal: the difference was born here" in found.problems[0]
    assert found.first.difference.kind == "figures" and found.first.difference.relative > 0.01


def test_a_module_of_another_class_is_told_by_both():
    """In the sentence, and in the row."""
    model, other = mlp(), mlp()
    other[1] = nn.GELU()
    found = tnp.compare(run_of(model, X), run_of(other, X))
    assert found.problems[0].startswith("1 (ReLU), which is GELU in the second, came out otherwise")
    assert "GELU in the second" in tnp.card(found).text.partition("differs")[2]


def test_a_dropout_is_told_to_draw_numbers():
    """Two runs of it differ by its nature."""
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5))
    found = tnp.compare(run_of(model, X), run_of(model, X))
    assert "born here, which draws random numbers" in found.problems[0]


def test_other_inputs_are_told_as_such():
    """They came with the call of the model."""
    model = mlp()
    found = tnp.compare(run_of(model, X), run_of(model, X + 1))
    assert found.first is not None and found.first.call.name == "0" and found.first.inputs_equal is False
    assert "its inputs had differed when Sequential was called" in found.problems[0]


class _Own(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.a, self.b, self.factor = nn.Linear(4, 4), nn.Linear(4, 4), factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.factor * self.a(x)) * self.factor


def test_a_difference_is_born_in_the_code_between_two_calls():
    """The input of the second was not what the first gave."""
    torch.manual_seed(0)
    model, other = _Own(1.0), _Own(2.0)
    other.load_state_dict(model.state_dict())
    found = tnp.compare(run_of(model, X), run_of(other, X))
    assert "b (Linear) came out otherwise" in found.problems[0]
    assert "its inputs had differed: the difference was born in the code of _Own" in found.problems[0]


def test_shapes_dtypes_ends_and_nans_are_told_before_figures():
    """Each in words, with both sides."""
    base = chain(leaf("a"), leaf("b"))
    for call, told in (
        (leaf("b", shape=(3, 5)), "(3, 4) float32 and (3, 5) float32"),
        (leaf("b", dtype="float16"), "(3, 4) float32 and (3, 4) float16"),
        (leaf("b", ends=(NAN,)), "NaN in the second alone"),
        (
            leaf("b", status=RAISED, error="ValueError: no"),
            "it returned in the first, and raised ValueError: no in the second",
        ),
        (replace(leaf("b"), outputs=()), "it gave 1 tensor in the first, and 0 tensors in the second"),
        (leaf("b", norm=3.3), "norm 3 and 3.3, 0.091 relative"),
    ):
        found = compared(base, chain(leaf("a"), call))
        assert found.first is not None and found.first.difference.told == told
        assert found.first.call.name == "b"
    cast = compared(base, chain(leaf("a"), leaf("b", dtype="bfloat16", norm=3.3)))
    assert cast.first is not None and cast.first.difference.relative == pytest.approx(0.3 / 3.3)
    nans = chain(leaf("a"), leaf("b", ends=(NAN,)))
    assert compared(nans, nans).equal


class _Off(nn.Module):
    """A leaf that gives a little more than it should."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = [inner]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner[0](x) + 1e-3


def _random_model(rng: random.Random, depth: int = 3) -> nn.Module:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6), nn.GELU()])
    return nn.Sequential(*(_random_model(rng, depth - 1) for _ in range(rng.randint(1, 4))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_planted_difference_is_found_in_any_model(seed):
    """In the very leaf in which it was planted, with its inputs equal, and nowhere else before it."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(*(_random_model(rng) for _ in range(3)))
    other = copy.deepcopy(model)
    names = [name for name, module in other.named_modules() if name and not list(module.children())]
    name = rng.choice(names)
    above, _, last = name.rpartition(".")
    other.get_submodule(above)[int(last)] = _Off(other.get_submodule(name))
    x = torch.randn(7, 6)
    assert tnp.compare(run_of(model, x), run_of(model, x)).equal
    found = tnp.compare(run_of(model, x), run_of(other, x))
    assert found.first is not None and found.first.call.name == name
    assert found.first.inputs_equal and not found.first.differs_inside
    assert all(one.call.index >= found.first.call.index or one.differs_inside for one in found.calls)


def test_calls_of_one_side_are_named():
    """Of a module, and of a second call of it; those without names are matched by their order."""
    first, second = chain(leaf("a"), leaf("b"), leaf("c")), chain(leaf("a"), leaf("c"))
    found = compared(first, second)
    assert not found.equal and found.verdict == "other calls"
    assert found.problems == ("1 call is in the first alone: b (Linear)",)
    assert compared(second, first).problems == ("1 call is in the second alone: b (Linear)",)
    twice = chain(leaf("a"), leaf("a", nth=1))
    assert [call.nth for call in compared(twice, chain(leaf("a"))).missing] == [1]
    nameless = PassRecord((one_call(0, "", "Net"), one_call(1, "", "Loss")))
    assert compared(nameless, PassRecord((one_call(0, "", "Other"), one_call(1, "", "Loss")))).num_calls == 2


def test_other_gradients_are_told_from_the_loss_backwards():
    """Although the forward was equal."""
    model = mlp()
    found = tnp.compare(run_of(model, X), run_of(model, X, lambda out: out.square().sum()))
    assert not found.calls and found.verdict == "other gradients"
    assert found.gradients[0].call.title == "Sequential"
    assert found.problems[0].startswith(
        "the figures of the forward are equal, and another gradient came back for Sequential: "
    )
    assert found.problems[0].endswith("the loss differed")
    assert next(iter(found.grads)).startswith("4.")
    first = chain(leaf("a", grad=(-1.0, 1.0)), leaf("b", grad=(-1.0, 1.0)))
    second = chain(leaf("a", grad=(-2.0, 1.0)), leaf("b", grad=(-1.0, 1.0)))
    assert compared(first, second).problems[0].endswith("; what came back for b was equal")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    deeper = torch.nn.Sequential(torch.nn.Linear(3, 4), *net[1:2], torch.nn.Linear(4, 4))
    x = torch.rand(4, 3)
    of_other_shapes = tnp.compare(run_of(net, x), run_of(deeper, x))
    assert not any("was equal" in one or "the loss differed" in one for one in of_other_shapes.problems)
    alone = with_grads(chain(leaf("a")), gradients(("a.weight", (-1.0, 1.0)), ("a.bias", None)))
    others = with_grads(chain(leaf("a")), gradients(("a.weight", (-1.0, 2.0)), ("a.bias", None)))
    assert compared(alone, others).problems == (
        "the figures of the forward are equal, and 1 parameter got another gradient: a.weight",
    )


@pytest.mark.parametrize("frozen", ["0.weight", "4.bias"])
def test_a_gradient_of_one_side_alone_is_a_difference(frozen):
    """Of a parameter that requires none in the other, whichever this is."""
    model, other = mlp(), mlp()
    other.get_parameter(frozen).requires_grad_(False)
    whole, partial = run_of(model, X), run_of(other, X)
    for side, runs in {"first": (whole, partial), "second": (partial, whole)}.items():
        found = tnp.compare(*runs)
        assert not found.equal and found.verdict == "other gradients" and list(found.grads) == [frozen]
        assert found.problems == (
            f"the figures of the forward are equal, and 1 parameter got a gradient in the {side} alone: {frozen}",
        )
        assert frozen in tnp.card(found).text.partition("differs")[2]


def test_what_was_not_read_is_counted_and_proves_nothing():
    """Neither that it is equal nor that it differs."""
    first = PassRecord((one_call(0, "a", gave=(value(None, note="on meta"),), got=(value(None),)),))
    found = compared(first, first)
    assert not found.equal and found.num_unread == 1 and not found.problems
    assert found.verdict == "what was read is alike; 1 value was not read"
    assert tnp.card(found).text.count("1 value was not read") == 1
    odd = PassRecord((one_call(0, "a", gave=(value(shape=(1,)),), got=(value(None),)),))
    assert "whether its inputs were equal is not known" in compared(first, odd).problems[0]


def test_a_step_of_an_optimizer_in_one_alone_is_a_difference():
    """And one of another optimizer, or of other parameters."""

    def steps_of(make: Any, parameters: Any = lambda model: model.parameters(), times: int = 1) -> Any:
        model = mlp()
        optimizer = make(parameters(model), lr=0.1)
        with tnp.follow(model) as run:
            model(X).square().mean().backward()
            for _ in range(times):
                optimizer.step()
        return run

    sgd, adam = torch.optim.SGD, torch.optim.Adam
    once = steps_of(sgd)
    assert tnp.compare(once, steps_of(sgd)).equal
    for other, told in (
        (steps_of(sgd, times=0), "1 step of SGD in the first, no step in the second"),
        (steps_of(adam, times=2), "1 step of SGD in the first, 2 steps of Adam in the second"),
        (
            steps_of(sgd, lambda model: model[4].parameters()),
            "the 1st step was of SGD, of 6 parameters in the first, and of SGD, of 2 parameters in the second",
        ),
    ):
        found = tnp.compare(once, other)
        assert not found.equal and found.verdict == "other steps" and found.problems == (told,)


_SOME, _OTHERS, _OF_RANK = (-1.0, 1.0), (-1.0, 2.0), "of rank {}, before DDP reduces it"


def test_a_pass_is_compared_with_a_pass_alone():
    """Whichever side the other stands on; and one that is not over says so."""
    model = mlp()
    run = run_of(model, X)
    for a, b in ((run, model), (model, run), (run, X), (X, run), (run, None)):
        with pytest.raises(
            tnp.BadRequestError, match="a pass that was followed is compared with another one, not with"
        ):
            tnp.compare(a, b)
    with pytest.raises(tnp.BadRequestError, match="not over"):
        tnp.compare(run, tnp.follow(model))


def times(number: int, max_calls: int, other: int = -1) -> tnp.FollowedPass:
    """Follow a model that is called so often, one time with another input."""
    model, x = mlp(), torch.ones(5, 4)
    with tnp.follow(max_calls=max_calls) as run:
        for i in range(number):
            model(x + (i == other))
    return run
