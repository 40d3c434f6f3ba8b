"""A gradient scaler: what is infinite because of its scale is no fault of the model, and the step that it skips."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.passes.recording.scalers import scalers_in

X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 1.0, 3.0]])


def made(scale: float, *, fused: bool = False) -> tuple[nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
    """Return a model, its optimizer and a scaler."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    return model, optimizer, torch.amp.GradScaler("cpu", init_scale=scale)


def step_of(model, optimizer, scaler, factor: float = 1.0) -> None:
    """Train for one step."""
    optimizer.zero_grad()
    scaler.scale(model(X).sum() * factor).backward()
    scaler.step(optimizer)
    scaler.update()


@pytest.mark.parametrize("level", ["modules", "operators"])
@pytest.mark.parametrize("fused", [False, True])
def test_inf_in_scaled_gradients_is_told_with_the_scale_and_is_no_alarm(fused, level):
    """A loss of 1e30 is finite, and 65,536 times its gradients are; by another factor they are not."""
    model, optimizer, scaler = made(65536.0, fused=fused)
    with tnp.follow(level=level) as run:
        step_of(model, optimizer, scaler, 1e35)
    assert run.problems[0] == "Inf in the scaled gradients (scale 65,536); the scaler skipped this step"
    assert run.first("inf") is run.first("nan") is None
    assert run.problems[0] in tnp.card(run).text
    assert "no infinity" not in tnp.card(run).text
    assert scaler.get_scale() == 32768
    assert run._record.scaling.num_skipped == 1


def test_steps_that_are_skipped_are_counted():
    """Three in one block, before one that is made."""
    model, optimizer, scaler = made(2.0**20)
    with tnp.follow() as run:
        for factor in (1e35, 1e35, 1e35, 1.0):
            step_of(model, optimizer, scaler, factor)
    assert run.problems[0] == "Inf in the scaled gradients (scale 1,048,576 at first); the scaler skipped 3 steps"
    assert len(run._record.steps) == 1


def test_a_scale_that_overflowed_first_explains_no_nan_of_a_later_loss():
    """As many a training begins, and a loss whose gradient is NaN by itself ends it."""
    model = nn.Linear(3, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=65536.0)
    with tnp.follow(model) as run:
        scaler.scale(model(X.abs()).sum() * 1e35).backward()
        scaler.step(optimizer)
        scaler.update()
        for is_bad in (False, True, False):
            optimizer.zero_grad()
            y = model(X)
            scaler.scale((y - y.detach()).square().mean().sqrt() if is_bad else y.mean()).backward()
            scaler.step(optimizer)
            scaler.update()
    told = "the first NaN was born in the loss or its backward, after Linear (3rd call), the last call"
    assert told in run.first("nan").sentence and run.first("nan").sentence == run.problems[0]
    assert run.problems[1] == "NaN in the scaled gradients (scale 65,536 at first); the scaler skipped 2 steps"


@pytest.mark.parametrize(
    "factors", [(1.0, 1.0, 1e35), (1e35, 1.0, 1.0, 1e35, 1e35, 1.0), (1.0, 1e35), (1.0, 1.0), (1.0, 1.0, 1e35, 1.0)]
)
@pytest.mark.parametrize("fused", [False, True])
def test_steps_are_counted_that_are_skipped_after_the_scale_has_grown(fused, factors):
    """After two steps it grows, and falls with the next that is skipped."""
    model, optimizer, _ = made(1.0, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
    with tnp.follow() as run:
        for factor in factors:
            step_of(model, optimizer, scaler, factor)
    assert run._record.scaling.num_skipped == factors.count(1e35)
    with tnp.follow() as run:
        for factor in factors:
            step_of(model, optimizer, scaler, factor)
    assert run._record.scaling.num_skipped == factors.count(1e35)
    assert run._record.scaling.was_used


def test_what_a_scaler_does_not_explain_is_the_model_s():
    """NaN that comes first, an Inf of the forward, and Inf where the scale has fallen to 1."""
    model, optimizer, scaler = made(65536.0)
    with tnp.follow() as run:
        scaler.scale((model(X).sum() * 0).sqrt() * 0).backward()
        scaler.step(optimizer)
        scaler.update()
    assert run.first("nan").phase == "backward"
    assert any(one.endswith("the scaler skipped this step") for one in run.problems[1:])
    with torch.no_grad():
        model[0].weight[0, 0] = torch.inf
    with tnp.follow() as run:
        step_of(model, optimizer, scaler)
    assert run.first("inf").name == "0.weight"
    model, optimizer, scaler = made(1.0)
    with tnp.follow() as run:
        scaler.scale((model(X).sum() * 1e38 * 10).clamp(max=1) * 1e38).backward()
        model[0].weight.grad.fill_(torch.inf)
        scaler.step(optimizer)
        scaler.update()
    assert run._record.scaling.scale == 1


@pytest.mark.parametrize("how", ["no update", "unscaled", "backward alone", "first use"])
def test_what_is_known_before_the_update_is_told(how):
    """That it was skipped, that it will be, or no more than that gradients are scaled."""
    model, optimizer, scaler = made(65536.0)
    if how != "first use":
        step_of(model, optimizer, scaler)
    with tnp.follow() as run:
        optimizer.zero_grad()
        scaler.scale(model(X).sum() * 1e35).backward()
        if how in ("no update", "unscaled"):
            scaler.unscale_(optimizer)
        if how == "no update":
            scaler.step(optimizer)
    told = {
        "no update": "Inf in the scaled gradients (scale 65,536); the scaler skipped this step",
        "unscaled": "Inf in the scaled gradients (scale 65,536); the scaler will skip this step",
        "first use": "Inf in the scaled gradients (scale 65,536)",
        "backward alone": "a gradient scaler (scale 65,536) is there, and was not seen at work: Inf may be of scaled "
        "gradients",
    }
    assert run.problems[1 if how == "backward alone" else 0] == told[how]
    assert (run.first("inf") is None) is (how != "backward alone")


@pytest.mark.parametrize("where", ["attribute", "function", "deep"])
def test_a_scaler_is_found_by_the_names_of_the_program(where):
    """Its own, or those of what holds it."""
    model, optimizer, found = made(65536.0)
    if where == "function":

        def train(scaler: torch.amp.GradScaler) -> tnp.FollowedPass:
            with tnp.follow() as run:
                step_of(model, optimizer, scaler, 1e35)
            return run

        run = train(found)
    else:
        trainer = SimpleNamespace(scaler=found) if where == "attribute" else SimpleNamespace(a=SimpleNamespace(b=found))
        del found
        with tnp.follow() as run:
            step_of(model, optimizer, trainer.scaler if where == "attribute" else trainer.a.b, 1e35)
    assert run.first("inf") is None
    assert "the scaler skipped this step" in run.problems[0]


def test_a_scaler_at_rest_says_nothing():
    """Nor one that is not enabled, nor one whose steps are made."""
    model, optimizer, scaler = made(65536.0)
    disabled = torch.amp.GradScaler("cpu", enabled=False)
    with tnp.follow() as run:
        step_of(model, optimizer, scaler)
    assert not any("scale" in one for one in run.problems)
    assert run._record.scaling.was_used
    scaler.update(4.0)
    with tnp.follow() as run:
        scaler.update(2.5)
    assert run._record.scaling.num_skipped == 0
    del scaler
    with tnp.follow() as run:
        step_of(model, optimizer, disabled)
    assert run._record.scaling is None


def test_the_scale_of_gradients_stands_beside_them_once():
    """Where nothing is wrong with them, and no scaler says otherwise."""
    model, optimizer, scaler = made(65536.0)
    scaled = "4 gradients back, those of a scaled loss 65,536 times as large ·"
    for factor, said in ((1.0, scaled), (1e38, "4 gradients back ·")):
        with tnp.follow() as run:
            step_of(model, optimizer, scaler, factor)
        text = tnp.card(run).text
        assert said in text and text.count("65,536") == 1, text
    with tnp.follow() as run:
        model(X).sum().backward()
    assert "4 gradients back ·" in tnp.card(run).text


def test_no_scaler_is_kept():
    """Its state is what it would be, and it is let go of."""
    import gc
    import weakref

    states = []
    for is_followed in (False, True):
        model, optimizer, scaler = made(65536.0)
        run = tnp.follow()
        if is_followed:
            with run:
                step_of(model, optimizer, scaler, 1e35)
        else:
            step_of(model, optimizer, scaler, 1e35)
        states.append(scaler.state_dict())
    assert states[0] == states[1]
    reference = weakref.ref(scaler)
    del scaler
    gc.collect()
    assert reference() is None


def test_of_two_scalers_at_work_no_scale_is_told_of_all_gradients():
    """Nobody knows which loss was scaled by which."""
    model, optimizer, scaler = made(1024.0)
    other, other_optimizer, other_scaler = made(16.0)
    with tnp.follow() as run:
        step_of(model, optimizer, scaler)
        step_of(other, other_optimizer, other_scaler)
    assert run._record.scaling is not None
    assert not run._record.scaling.is_sole
    assert "times those" not in tnp.card(run).text


def test_gradients_of_a_scale_that_has_grown_are_told_to_be_scaled():
    """By how much is not said of each."""
    model, scaler = nn.Linear(2, 2), torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tnp.follow() as run:
        scaler.scale(model(torch.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert "1 gradient back, those of scaled losses larger by their scales ·" in str(tnp.card(run))


def test_no_class_of_the_program_is_asked_for_its_hash():
    """Its metaclass may compute that; a scaler below what is of such a class is found."""
    asked: list[str] = []

    class Counting(type):
        def __hash__(cls) -> int:
            asked.append(cls.__name__)
            return type.__hash__(cls)

        __eq__ = type.__eq__

    class Trainer(metaclass=Counting):
        def __init__(self) -> None:
            self.scaler = torch.amp.GradScaler("cpu")

    trainers = [Trainer(), Trainer()]
    asked.clear()
    found = scalers_in({"a": trainers[0], "b": trainers[1]})
    assert not asked and [*map(id, found)] == [id(one.scaler) for one in trainers]
