"""Two passes side by side: where they began to differ, and whether the difference was born there."""

from __future__ import annotations

import copy
import pickle
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from made_passes import NAN, chain, figures, gradients, leaf, one_call, value, weight, with_grads
from torch import nn

import tensornp as tnp
from tensornp.passes.recording.sharded_gradients import UNSEEN
from tensornp.passes.records import CAME_WITH_THE_CALL, HELD, NOT_CALLED, RAISED, Figures, PassRecord, Value
from tensornp.passes.verdict.compared_values import difference_of
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


def test_a_pass_without_a_backward_has_no_other_loss():
    """Whichever of both it is."""
    model = mlp()
    with tnp.follow(model) as alone:
        model(X)
    sides = {"first": (run_of(model, X), alone), "second": (alone, run_of(model, X))}
    for side, runs in sides.items():
        said = f"the figures of the forward are equal, and gradients came back in the {side} alone"
        assert tnp.compare(*runs).problems == (said,)


def test_a_dropout_is_told_to_draw_numbers():
    """Two runs of it differ by its nature."""
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5))
    found = tnp.compare(run_of(model, X), run_of(model, X))
    assert "born here, which draws random numbers" in found.problems[0]


_MODES = "was in train() in the first and in eval() in the second"


class _Drops(nn.Module):
    """What draws in its own code, before it calls a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(nn.functional.dropout(self.a(x), 0.5, self.training))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)),
            f"; it {_MODES}, and the figures of its inputs were equal: the difference was born here",
        ),
        (
            nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
            f"; it {_MODES}, and its running_mean and running_var had differed before",
        ),
        (
            _Drops(),
            f"; its inputs had differed: the difference was born in the code of _Drops, which {_MODES}",
        ),
    ],
)
def test_the_mode_of_a_module_is_told_where_it_is_another_one(model, told):
    """In eval nothing is drawn, and batches are not normalised by themselves."""
    runs = run_of(model, X), run_of(model.eval(), X)
    assert tnp.compare(*runs).problems[0].endswith(told)
    assert [call.is_training for call in runs[0].calls + runs[1].calls] == [True] * 3 + [False] * 3


def test_a_dropout_in_eval_draws_nothing():
    """Whatever else made the difference."""
    first, second = chain(leaf("a", "Dropout")), chain(leaf("a", "Dropout", ends=(0.0, 1.0)))
    calls = [tuple(replace(call, is_training=False) for call in record.calls) for record in (first, second)]
    found = compared(*map(PassRecord, calls))
    assert found.problems[0].endswith("the difference was born here")


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


def test_a_difference_after_the_last_call_is_in_the_own_code_of_the_model():
    """All inside was equal."""
    calls = [leaf("a"), leaf("b")]
    first = chain(*calls, inside="Net")
    root = first.calls[0]
    second = replace(first, calls=(replace(root, outputs=(value((-1.0, 3.0)),)), *first.calls[1:]))
    found = compared(first, second)
    assert found.problems == (
        "Net came out otherwise: max 2 and 3, 0.33 relative; the figures of its inputs were equal: the "
        "difference was born in its own code, after b",
    )


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


def test_gradients_of_values_of_other_dtypes_are_compared():
    """By their figures; whether the loss differed, these do not tell."""

    def with_grad(dtype: str, ends: tuple[float, ...], norm: float) -> PassRecord:
        return chain(leaf("a"), leaf("b", grad=ends, grad_norm=norm, dtype=dtype))

    base = with_grad("float32", (-1.0, 2.0), 3.0)
    for ends, norm, told in (
        ((-1.0, 2.0), 3.003, "norm 3 and 3.003, 0.001 relative, as float32 and bfloat16"),
        ((NAN,), 3.0, "NaN in the second alone, as float32 and bfloat16"),
    ):
        found = compared(base, with_grad("bfloat16", ends, norm))
        assert [one.difference.told for one in found.gradients] == [told]
        assert f"another gradient came back for b (Linear): {told}" in found.problems
    assert not compared(base, with_grad("bfloat16", (-1.0, 2.0), 3.0)).gradients


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


def test_figures_of_a_gpu_may_differ_by_the_rounding_of_a_sum():
    """Those of a CPU may not: it adds in one order."""

    def of(device: str, norm: float) -> PassRecord:
        gave = (value(norm=norm, device=device),)
        return PassRecord((one_call(0, "a", gave=gave, got=(value(device=device),), params=(weight(device=device),)),))

    assert compared(of("cuda:0", 3.0), of("cuda:0", 3.0000001)).equal
    assert not compared(of("cpu", 3.0), of("cpu", 3.0000001)).equal
    assert not compared(of("cuda:0", 3.0), of("cuda:0", 3.001)).equal


def test_what_was_not_read_is_counted_and_proves_nothing():
    """Neither that it is equal nor that it differs."""
    first = PassRecord((one_call(0, "a", gave=(value(None, note="on meta"),), got=(value(None),)),))
    found = compared(first, first)
    assert not found.equal and found.num_unread == 1 and not found.problems
    assert found.verdict == "what was read is alike; 1 value was not read"
    assert tnp.card(found).text.count("1 value was not read") == 1
    odd = PassRecord((one_call(0, "a", gave=(value(shape=(1,)),), got=(value(None),)),))
    assert "whether its inputs were equal is not known" in compared(first, odd).problems[0]


def test_two_passes_under_vmap_are_not_equal_where_nothing_was_read():
    """What went in was another thing."""
    model = mlp()
    runs = []
    for seed in range(2):
        with tnp.follow(model) as run:
            torch.func.vmap(model)(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)))
        runs.append(run)
    found = tnp.compare(*runs)
    assert not found.equal and repr(found) == "<PassComparison: what was read is alike; 6 values were not read>"


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


@pytest.mark.parametrize(
    ("first", "second", "is_equal", "differs"),
    [
        ((_SOME, _OF_RANK.format(0)), (_SOME, _OF_RANK.format(0)), True, False),
        ((_SOME, _OF_RANK.format(0)), (_OTHERS, _OF_RANK.format(0)), False, True),
        ((_SOME, _OF_RANK.format(0)), (_OTHERS, _OF_RANK.format(1)), False, False),
        ((_SOME, _OF_RANK.format(0)), (None, ""), False, True),
        ((None, ""), (None, NOT_CALLED), True, False),
        ((_SOME, ""), (None, NOT_CALLED), False, True),
        ((None, HELD), (None, ""), True, False),
        ((None, HELD), (_SOME, ""), False, False),
        ((None, UNSEEN), (None, UNSEEN), False, False),
        ((None, UNSEEN), (_SOME, ""), False, False),
    ],
)
def test_gradients_are_compared_with_those_of_the_same_part(first, second, is_equal, differs):
    """What was not seen is not known to be equal; of a module that was not called, nothing is of this pass."""

    def of(ends: tuple[float, ...] | None, note: str) -> PassRecord:
        (one,) = gradients(("a.weight", ends))
        return with_grads(chain(leaf("a")), (replace(one, note=note),))

    for sides in ((first, second), (second, first)):
        found = compared(*(of(*side) for side in sides))
        assert found.equal is is_equal and bool(found.grads) is differs
        assert bool(found.num_unread) is not (is_equal or differs)


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


def test_a_comparison_is_a_frozen_record_in_a_line():
    """It can be kept, and explains a failing assert."""
    model, other = mlp(), mlp(1)
    found = tnp.compare(run_of(model, X), run_of(other, X))
    assert repr(found).startswith("<PassComparison: the first call that differs is 0 (Linear); 0 (Linear) came out")
    assert "\n" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found == copy.deepcopy(found)


def test_what_came_with_the_call_is_known():
    """A value of made passes has no maker where none is given."""
    assert value().made_by == CAME_WITH_THE_CALL and figures(1.0).min == 1.0


def test_a_comparison_shows_no_control_character_of_a_name():
    """Nor in its line, which a terminal prints."""
    named = torch.nn.Sequential()
    named.add_module("\x1b[31m\u202e", torch.nn.Linear(2, 2))
    runs = []
    for x in (torch.ones(1, 2), torch.zeros(1, 2)):
        with tnp.follow(named) as run:
            named(x)
        runs.append(run)
    shown = repr(tnp.compare(*runs))
    assert r"\x1b[31m\u202e" in shown and shown.isprintable()


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_a_step_that_moves_further_is_another_step(rate):
    """All else being equal before it."""

    def run_of(rate: float) -> tnp.FollowedPass:
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), rate)
        with tnp.follow() as run:
            model(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()
        return run

    found = tnp.compare(run_of(0.1), run_of(rate))
    told = () if rate == 0.1 else ("the 1st step, of Adam, made other values of the parameters",)
    assert (found.equal, found.problems) == (not told, told)


def test_a_forward_that_was_not_read_is_not_called_equal():
    """Gradients were."""

    def run_of(seed: int) -> tnp.FollowedPass:
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        torch.manual_seed(seed)
        with tnp.follow() as run:
            torch.func.vmap(model)(torch.randn(4, 3)).square().sum().backward()
        return run

    found = tnp.compare(run_of(1), run_of(2))
    assert found.problems[0].startswith("2 parameters got another gradient")


def test_a_forward_of_which_no_call_was_compared_is_not_called_equal():
    """Nor one of which some calls have no partner, which may have given something else."""
    first = gradients(("a.weight", (-1.0, 1.0)))
    second = gradients(("a.weight", (-1.0, 2.0)))
    told = "1 parameter got another gradient: a.weight"
    for calls in ((leaf("b", "Tanh"),), (leaf("a"), leaf("b", "Tanh"))):
        found = compared(with_grads(chain(*calls), first), with_grads(chain(leaf("a")), second))
        assert found.problems[0] == told
    assert compared(with_grads(chain(leaf("a")), first), with_grads(chain(leaf("a")), second)).problems == (
        f"the figures of the forward are equal, and {told}",
    )


class _Adapted(nn.Module):
    """A layer inside another one, as an adapter has it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.base_layer, self.more = inner, nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.more(x)


def _adapted() -> nn.Sequential:
    model = _own_layers()
    model[0] = _Adapted(model[0])
    return model


def _own_layers(*more: nn.Module, bias: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), *more)
    if not bias:
        model[0].bias = None
    return model


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (_own_layers(nn.Linear(4, 4)), "1 call inside it is in the second alone: 2 (Linear)"),
        (
            _adapted(),
            "2 calls inside it are in the second alone: 0.base_layer (Linear), 0.more (Linear); "
            "its weight and bias are in the first alone",
        ),
        (_own_layers(bias=False), "its bias is in the first alone"),
    ],
)
def test_a_difference_is_not_born_in_code_beside_which_other_calls_came(other, told):
    """Nor in weights that the other has not."""
    found = tnp.compare(run_of(_own_layers(), X), run_of(other, X))
    assert found.problems[0].endswith(f"; the figures of its inputs were equal, and {told}")
    assert found.first is not None and found.first.is_born_here is ("bias is" in told)


@pytest.mark.parametrize("inside", ["Net", ""])
def test_inputs_are_not_born_in_code_between_calls_of_which_one_has_no_partner(inside):
    """It may have made them."""
    less = chain(leaf("a"), leaf("b"), inside=inside)
    more = chain(leaf("a"), leaf("more", ends=(0.0, 1.0)), leaf("b", ends=(0.0, 1.0)), inside=inside)
    for runs, side in (((less, more), "second"), ((more, less), "first")):
        assert (
            compared(*runs)
            .problems[0]
            .endswith(f"; its inputs had differed, and 1 call before it is in the {side} alone: more (Linear)")
        )


def test_a_difference_is_not_born_in_code_where_what_a_call_inside_gave_was_not_read():
    """It may have been born in that call."""
    first = chain(leaf("a", ends=None), inside="Net")
    second = replace(first, calls=(replace(first.calls[0], outputs=(value((0.0, 1.0)),)), first.calls[1]))
    first = replace(first, calls=(replace(first.calls[0], outputs=(value(),)), first.calls[1]))
    assert (
        "the difference was born in it, where not all was read that calls gave" in compared(first, second).problems[0]
    )


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((-1.0, 2.0, 1.0, 3.0), (-1.0, 2.0, 1.0, 3.3), "norm 3 and 3.3, 0.091 relative"),
        ((-1.0, 2.0, 1.0, 3.0), (-1.0, 4.0, 1.0, 3.3), "max 2 and 4, 0.5 relative"),
        ((-1.0, 4.0, 1.0, 5.0), (-2.0, 4.0, 1.0, 5.1), "min −1 and −2, 0.25 of the greatest modulus"),
        ((-1.0, 4.0, 1.0, 5.0), (-1.0, 4.0, 2.0, 5.0), "sum 1 and 2, 0.1 of norm × √count"),
    ],
)
def test_how_far_figures_differ_is_told_of_the_figure_that_is_named(first, second, told):
    """It is the one that differs most."""
    sides = (Value("", (4,), "float32", "cpu", figures=Figures(*one, 4)) for one in (first, second))
    found = difference_of(*sides)
    assert found is not None and found.told == told and f"{found.relative:.2g} " in told


def times(number: int, max_calls: int, other: int = -1) -> tnp.FollowedPass:
    """Follow a model that is called so often, one time with another input."""
    model, x = mlp(), torch.ones(5, 4)
    with tnp.follow(max_calls=max_calls) as run:
        for i in range(number):
            model(x + (i == other))
    return run


def test_calls_that_were_not_kept_are_named_and_prove_nothing():
    """One of them may be what differs, or the partner of one that is in the other pass alone."""
    num = len(times(1, 10_000))
    complete, cut = times(10, 10_000), times(10, num * 4)
    found = tnp.compare(cut, times(10, num * 4, other=5))
    left = num * 10 - len(cut)
    assert (found.equal, found.problems, found.num_dropped) == (False, (), (left, left))
    told = f"calls past max_calls were not kept: {left} of the first"
    assert found.verdict == f"what was read is alike; {told} and {left} of the second"
    found = tnp.compare(cut, complete)
    assert (found.equal, found.problems, found.unexpected) == (False, (), ())
    assert f"<PassComparison: what was read is alike; {told}>" in repr(found)
    assert tnp.compare(complete, times(10, 10_000)).equal
    found = tnp.compare(cut, times(11, num * 4))
    assert not found.missing and not found.unexpected


def test_operators_that_were_not_kept_are_no_calls_that_were_not():
    """Calls alone are compared."""
    model, runs = nn.ReLU(), []
    for _ in "ab":
        with tnp.follow(max_calls=4, level="operators") as run:
            model(torch.ones(2)).exp().log().exp().log().exp()
        runs.append(run)
    assert runs[0]._record.num_dropped and len(runs[0]) == 1
    assert tnp.compare(*runs).equal


def test_where_calls_were_not_kept_no_difference_is_born():
    """In a call of which all that it called was kept, one is, as in any pass."""
    num = len(times(1, 10_000))
    found = tnp.compare(times(10, num * 4), times(10, num * 4, other=9))
    assert found.problems and found.problems[0].endswith(
        "its inputs had differed, and not all calls before it were kept"
    )
    assert "calls past max_calls were not kept" in tnp.card(found).text
    found = tnp.compare(times(10, num * 4), times(10, num * 4, other=1))
    assert "its inputs had differed when " in found.problems[0]
    inner, outer = one_call(1, "m.a", parent=0, order=0, gave=[value()]), one_call(0, "m", gave=[value()], order=3)
    other = replace(outer, outputs=(value((0.0, 9.0)),))
    for dropped, told in ((0, "in its own code, after m.a"), (2, "in it, where not all calls were kept")):
        both = [PassRecord((one, inner), num_dropped=dropped) for one in (outer, other)]
        found = compared(*both)
        assert found.problems[0].endswith(f"the difference was born {told}")
        assert found.first is not None and found.first.is_born_here is not bool(dropped)
