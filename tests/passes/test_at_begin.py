"""A weight that is not finite is told to have been so before the pass where that is known, else what is known of it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.passes.recording import modules_among

NAN = float("nan")
LEVELS = ("modules", "operators")
ONES = torch.ones(1, 3)


def linear(value: float | None = None, **options: Any) -> nn.Linear:
    """Return a small layer, of one value throughout where that is given."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 3, **options)
    if value is not None:
        nn.init.constant_(layer.weight, value)
    return layer


class Writes(nn.Module):
    """Writes what the layer computes with that it calls then."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.a(x)
        with torch.no_grad():
            self.b.weight.copy_((h * 0).log() * 0)
        out: torch.Tensor = self.b(h)
        return out


def divided(model: nn.Linear) -> None:
    with torch.no_grad():
        model.weight.div_(0).mul_(0)


def loaded(model: nn.Linear) -> None:
    model.load_state_dict({"weight": torch.full((3, 3), NAN), "bias": torch.zeros(3)})


def moved(model: nn.Linear) -> None:
    with torch.no_grad():
        model.weight.lerp_(torch.full((3, 3), NAN), 0.1)


def replaced(model: nn.Linear) -> None:
    model.weight = nn.Parameter(model.weight.detach() * NAN)


def set_data(model: nn.Linear) -> None:
    model.weight.data = model.weight.data * NAN


def registered(model: nn.Linear) -> None:
    del model.weight
    model.register_parameter("weight", nn.Parameter(torch.full((3, 3), NAN)))


WRITTEN, PUT = "and had been written in the pass", "and had been put there in the pass"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [(divided, WRITTEN), (loaded, WRITTEN), (moved, WRITTEN), (replaced, PUT), (set_data, PUT), (registered, PUT)],
)
def test_what_was_done_to_a_weight_before_its_first_call_is_told(change, told, is_given, level):
    """Nothing is known of what it held before the pass."""
    model = linear(1.0)
    with tnp.follow(*[model] * is_given, level=level) as run:
        change(model)
        model(ONES)
    said = [*run.problems, run.first("nan").sentence]
    assert not any("before the pass" in one for one in said), said
    assert run.first("nan").phase != "before the pass"
    # Where operators are followed that have made it, these are told first.
    assert run.problems[-1] == f"weight held NaN when Linear was first called, {told}"
    assert len(run.problems) == 1 or (level == "operators" and not is_given)


@pytest.mark.parametrize("level", LEVELS)
def test_a_cast_that_overflows_is_none_that_held_it_before(level):
    """`half` gives a parameter other memory."""
    model = linear(1e6)
    with tnp.follow(level=level) as run:
        model.half()
        model(ONES.half())
    assert f"weight held Inf when Linear was first called, {PUT}" in run.problems
    assert not any("before the pass" in one for one in run.problems)


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_made_in_the_block_held_nothing_before_it(level):
    """Nor is it known to have been written after it was made."""
    with tnp.follow(level=level) as run:
        model = nn.Sequential(linear(), nn.ReLU())
        with torch.no_grad():
            model[0].weight.log_()
        model(ONES)
    said = "0.weight held NaN when 0 (Linear) was first called"
    if level == "modules":
        assert run.problems == [said]
        assert run.first("nan").phase == "forward"
    else:
        assert run.problems[0].startswith("the first NaN was born at `log_`")
        assert run.problems[1] == f"{said}, {WRITTEN}"


@pytest.mark.parametrize("level", LEVELS)
def test_a_forward_that_writes_a_weight_is_no_weight_from_before(level):
    """The child that computes with it has nothing to do with it."""
    model = Writes()
    with tnp.follow(level=level) as run:
        model(ONES)
    assert f"b.weight held NaN when b (Linear) was first called, {WRITTEN}" in run.problems
    assert not any("before the pass" in one for one in run.problems)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("average", ["swa", "target"])
def test_averages_of_what_a_step_has_spoilt_come_from_it(average, level):
    """They were updated after the step, and before they were called."""
    model = linear()
    target = torch.optim.swa_utils.AveragedModel(model) if average == "swa" else copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow(level=level) as run:
        (model(ONES).sum() * 1e38 * 1e38).backward()
        optimizer.step()
        if average == "swa":
            target.update_parameters(model)
        else:
            target.load_state_dict(model.state_dict())
        target(ONES)
    assert not any("before the pass" in one for one in run.problems), run.problems
    name = "target.module" if average == "swa" else "target"
    assert any(
        one == "2 parameters that had been written in the pass held −Inf when first read: "
        f"{name}.weight, {name}.bias" for one in run.problems
    )  # fmt: skip
    assert f"{name}." not in run.problems[0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_step_by_hand_is_none_from_before(is_given, level):
    """Beside modules that are given, the operators of the block are not followed: an earlier call has seen it."""
    model = linear()
    with tnp.follow(*[model] * is_given, level=level) as run:
        model(torch.zeros(1, 3)).sum().backward()
        with torch.no_grad():
            model.weight -= 0.1 * model.weight.grad / model.weight.grad.norm()
        model(torch.zeros(1, 3))
    said = run.problems[0]
    if level == "operators" and not is_given:
        assert said.startswith("the first NaN was born at `div`")
    else:
        assert said == "weight held NaN when Linear (2nd call) was called, and was finite before: written since"
        assert run.first("nan").phase == "forward"


@pytest.mark.parametrize("level", LEVELS)
def test_a_tied_weight_has_its_first_name(level):
    """By that it was read first."""
    model = nn.Sequential(linear(), linear())
    model[1].weight = model[0].weight
    with tnp.follow(model, level=level) as run:
        model(ONES).sum().backward()
        with torch.no_grad():
            model[0].weight.mul_(NAN)
        model(ONES)
    assert run.first("nan").sentence.startswith("0.weight held NaN when 0 (Linear, 2nd call) was called, and was fini")


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_functional_call_gives_is_not_the_modules_own(level):
    """A network for weights: what it has made is read in the place of a weight that is finite."""
    torch.manual_seed(0)
    model, made_by = nn.Linear(3, 2), nn.Linear(1, 6)
    with tnp.follow(level=level) as run:
        weight = made_by(torch.ones(1)).log().view(2, 3)
        torch.func.functional_call(model, {"weight": weight}, (ONES,))
    said = "what was given for model.weight in a functional call held NaN when model (Linear) was called"
    assert said in run.problems
    assert not any("before the pass" in one or "written" in one for one in run.problems)
    if level == "modules":
        assert (run.first("nan").sentence, run.first("nan").phase) == (said, "forward")


def test_what_a_call_gives_for_a_weight_was_born_in_that_call():
    """It is an input of another kind."""
    model, made_by = nn.Linear(3, 2), nn.Sequential(nn.Linear(1, 6), nn.Tanh())
    nn.init.constant_(made_by[0].weight, NAN)
    with tnp.follow() as run:
        torch.func.functional_call(model, {"weight": made_by(torch.ones(1)).view(2, 3)}, (ONES,))
    assert run.first("nan").sentence == "made_by.0.weight held NaN before the pass"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_given", [True, False])
def test_inner_steps_write_no_weight(is_given, level):
    """What a step of an inner loop has made takes the place of weights that stay as they are."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    nn.init.constant_(model[2].bias, -5.0)
    with tnp.follow(*[model] * is_given, level=level) as run:
        own = dict(model.named_parameters())
        loss = torch.func.functional_call(model, own, (torch.ones(2, 3),)).sqrt().mean()
        grads = torch.autograd.grad(loss, list(own.values()))
        fast = {name: one - 0.1 * grad for (name, one), grad in zip(own.items(), grads, strict=True)}
        torch.func.functional_call(model, fast, (torch.ones(2, 3),))
    assert all(one.isfinite().all() for one in model.parameters())
    assert not any("written" in one or "before the pass" in one for one in run.problems), run.problems
    if is_given or level == "modules":
        assert run.problems[0] == (
            "what was given for 0.weight in a functional call held NaN when 0 (Linear, 2nd call) was called"
        )


def test_a_weight_of_its_own_after_another_was_given_for_it_was_not_written():
    """What stood in for it was finite; it never was."""
    model = linear(NAN)
    with tnp.follow(model) as run:
        torch.func.functional_call(model, {"weight": torch.ones(3, 3)}, (ONES,))
        model(ONES)
    assert run.first("nan").sentence == "weight held NaN before the pass"


class Plain(nn.Module):
    """Holds what it calls in a plain list."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layers = [layer]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers[0](x)
        return out


def bound(model: nn.Module) -> Callable[[], Any]:
    """Return a method of a model."""
    return functools.partial(Plain(model).forward, ONES).func


def closed(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    """Return a function that a model is known to by its closure."""

    def call(x: torch.Tensor) -> Any:
        return model(x)

    return call


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "holder",
    [
        lambda one: one,
        Plain,
        lambda one: [one],
        lambda one: {"net": (one,)},
        lambda one: SimpleNamespace(net=one),
        lambda one: SimpleNamespace(all={"nets": [one]}),
        closed,
        bound,
    ],
    ids=["name", "plain list", "list", "dictionary", "attribute", "below an attribute", "closure", "method"],
)
def test_what_names_reach_is_known_from_before(holder, level):
    """As a model itself is."""
    held = holder(linear(NAN))
    call = held if callable(held) else None
    with tnp.follow(level=level) as run:
        if call is not None:
            call(ONES)
        else:
            found = held
            while not isinstance(found, nn.Module):
                rows = found.values() if isinstance(found, dict) else found
                found = next(iter(vars(found).values() if isinstance(found, SimpleNamespace) else rows))
            found(ONES)
    assert run.first("nan").sentence.endswith("weight held NaN before the pass")
    assert run.first("nan").phase == "before the pass"


def test_what_was_infinite_and_became_nan_was_not_finite_before():
    """It held the one before the pass, and the other when it was called again."""
    model = linear(float("inf"))
    with tnp.follow(model) as run:
        model(ONES)
        with torch.no_grad():
            model.weight.mul_(0)
        model(ONES)
    said = "weight held NaN when Linear (2nd call) was called, and held Inf before: written since"
    assert run.problems == [said, "weight held Inf before the pass"]
    assert [run.first(what).phase for what in ("nan", "inf")] == ["forward", "before the pass"]


def test_objects_that_refuse_to_be_looked_at_are_no_reason_to_stop():
    """Nothing of the user's runs, and what is noted holds nothing."""

    class Refuses:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("eq")

        __hash__ = None  # type: ignore[assignment]

    refuses, odd = Refuses(), linear(NAN)
    names = {"refuses": refuses, "all": [refuses, {"odd": odd}], "it": (lambda: refuses), "cls": Refuses}
    with tnp.follow(namespace=names) as run:
        odd(ONES)
    assert run.first("nan").sentence == "weight held NaN before the pass"


def test_a_meta_and_a_lazy_weight_and_one_of_inference_are_noted_without_a_word():
    """What has no memory, no shape or no version."""
    with torch.inference_mode():
        quiet = linear()
        nn.init.constant_(quiet.weight, NAN)
    lazy, meta = nn.LazyLinear(2), nn.Linear(3, 3, device="meta")
    with tnp.follow() as run:
        lazy(ONES)
        meta(torch.ones(1, 3, device="meta"))
        with torch.inference_mode():
            quiet(ONES)
    assert run.first("nan").sentence == "quiet.weight held NaN when quiet (Linear) was first called"
    assert not run._record.notes


def test_two_passes_differ_before_them_where_that_is_known_of_both():
    """Else when their weights were first read."""
    model, states = linear(1.0), [linear(value).state_dict() for value in (1.0, 2.0)]
    runs = []
    for state in states:
        model.load_state_dict(states[0])
        with tnp.follow(model) as run:
            model.load_state_dict(state)
            model(ONES)
        runs.append(run)
    found = tnp.compare(*runs)
    assert [*found.weights] == ["weight"] and not found.weights_before
    assert found.problems[1].startswith("1 weight differed when first read: weight (")
    assert "before the pass" not in tnp.card(found).text and "when first read" in tnp.card(found).text
    runs = []
    for state in states:
        model.load_state_dict(state)
        with tnp.follow(model) as run:
            model(ONES)
        runs.append(run)
    found = tnp.compare(*runs)
    assert found.weights_before == {"weight"}
    assert found.problems[1].startswith("1 weight differed before: weight (")
    assert "before the pass" in tnp.card(found).text


class Keeps(nn.Module):
    """Computes with the weights of what it holds, and never calls."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.ParameterDict({"a": nn.Parameter(torch.ones(3, 3)), "b": nn.Parameter(torch.ones(3, 3))})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.own["a"] @ self.own["b"]


def test_weights_of_what_is_never_called_are_known_by_the_module_that_has_them():
    """One that was written, and one that is as it was."""
    model = Keeps()
    nn.init.constant_(model.own["b"], NAN)
    with tnp.follow() as run:
        nn.init.constant_(model.own["a"], NAN)
        model(ONES)
    assert run.problems == [
        f"own.a held NaN when Keeps was first called, {WRITTEN}", "own.b held NaN before the pass"
    ]  # fmt: skip


def test_a_weight_that_was_swapped_is_another_one():
    """Nothing that is noted keeps torch from it."""
    model = linear(1.0)
    with tnp.follow() as run:
        torch.utils.swap_tensors(model.weight, nn.Parameter(torch.full((3, 3), NAN)))
        model(ONES)
    assert run.problems == [f"weight held NaN when Linear was first called, {PUT}"]


def test_more_models_than_are_noted_are_not_known(monkeypatch: pytest.MonkeyPatch):
    """Of the rest it is said when it was called."""
    monkeypatch.setattr("tensornp.passes.recording.at_begin._MOST_TENSORS", 2)
    models = [linear(NAN), linear(NAN)]
    with tnp.follow(models[1], models[0]) as run:
        models[0](ONES)
    assert run.problems == ["Linear #2.weight held NaN when Linear #2 (Linear) was first called"]


def test_of_parts_of_one_buffer_nobody_knows_which_was_written():
    """Torch counts for all of them together."""
    flat = torch.ones(18)
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    for i, layer in enumerate(model):
        layer.weight = nn.Parameter(flat[9 * i : 9 * i + 9].view(3, 3))
    flat[0] = NAN
    with tnp.follow(model) as run:
        with torch.no_grad():
            model[1].weight.add_(1)
        model(ONES)
    assert run.problems[0] == "0.weight held NaN when 0 (Linear) was first called"


def test_rows_of_numbers_are_not_walked_through(monkeypatch):
    """A tokenised split in the namespace costs no more than other names do."""
    walked, held_by = [], modules_among._held_by
    monkeypatch.setattr(modules_among, "_held_by", lambda obj, kind: walked.append(obj) or held_by(obj, kind))
    rows = [[j for j in range(900)] for _ in range(1000)]
    assert len(list(modules_among.modules_among([linear(1.0), rows]))) == 1
    assert len(walked) < 20
