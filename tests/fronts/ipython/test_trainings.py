"""Trainings that are looked at: nothing of them is changed, and none is told that its gradients are wrong."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from IPython.utils.capture import capture_output
from older import needs_what_is_saved
from trainings import TRAININGS, state_of

from tensornp.render.layout.style import badge_style

AMBER = badge_style("alarm")
LOOKS: dict[str, tuple[str, Any]] = {
    "after each phase": ("sgd", lambda phase: True),
    "after each step": ("adam", lambda phase: phase.startswith("zero_grad")),
    "between forward and backward": ("fused", lambda phase: phase == "forward"),
}
"""With another optimizer each."""
NUM_STEPS = 2


def cell(shell: Any, code: str) -> str:
    """Run a cell, and return all that it showed, as text and HTML."""
    with capture_output() as captured:
        shell.ip.run_cell(code, store_history=True).raise_error()
    shown = [text for output in captured.outputs for text in output.data.values()]
    return "\n".join([captured.stdout, captured.stderr, *shown])


def cards(shell: Any, model: torch.nn.Module) -> str:
    """Return the cards of all parameters, of their gradients, and of all buffers, and of the model itself."""
    tensors = [
        *model.parameters(),
        *(p.grad for p in model.parameters() if p.grad is not None),
        *model.buffers(),
        model,
    ]
    return "\n".join(text for t in tensors for text in shell.show_within_modes(t).values())


def states(training: Any) -> list[dict[str, torch.Tensor]]:
    return [state_of(training) for _ in training.phases(NUM_STEPS)]


def assert_equal(watched: list[dict[str, torch.Tensor]], unwatched: list[dict[str, torch.Tensor]]) -> None:
    assert len(watched) == len(unwatched)
    for seen, unseen in zip(watched, unwatched, strict=True):
        assert seen.keys() == unseen.keys()
        assert [name for name in seen if not torch.equal(seen[name], unseen[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize(("family", "looks"), zip(list(TRAININGS)[::2], itertools.cycle(LOOKS)))
def test_a_training_that_is_watched_raises_no_alarm_and_computes_the_same(shell, family, looks):
    """Cards, the watch and the table of what has changed; each value and gradient is the same to the last bit."""
    optimizer, is_looked_at = LOOKS[looks]
    training = shell.namespace["training"] = TRAININGS[family](optimizer)
    phases = training.phases(NUM_STEPS)
    shell.namespace["step"] = lambda: next(phases, None)
    shell.run("%config TensorDisplay.stats = 'off'")
    told, seen = cell(shell, "%tensorwatch training") + cards(shell, training.model), []
    while True:
        told += cell(shell, "phase = step()")
        phase = shell.namespace["phase"]
        if phase is None:
            break
        if is_looked_at(phase):
            told += cards(shell, training.model)
        seen.append(state_of(training))
    assert "changed since" in told
    assert "Traceback" not in told
    assert AMBER not in told
    assert "wrong gradients" not in told
    assert_equal(seen, states(TRAININGS[family](optimizer)))


def shown(shell: Any, tensor: torch.Tensor) -> str:
    return shell.show_within_modes(tensor)["text/html"]


def is_alarm(card: str) -> bool:
    return AMBER in card and "backward gives wrong gradients without an error" in card


def inner_weight(model: torch.nn.Module) -> torch.nn.Parameter:
    """Return a weight through which the gradients of earlier layers go."""
    return [p for p in model.parameters() if p.dim() > 1][-1]


def is_off(training: Any, other: Any) -> bool:
    """Return whether a gradient of one training is another one in the other."""
    pairs = zip(training.model.parameters(), other.model.parameters(), strict=True)
    return any(not torch.equal(p.grad, q.grad) for p, q in pairs)


def numpy_write(weight: torch.Tensor) -> None:
    weight.detach().numpy()[...] *= -3


def data_write(weight: torch.Tensor) -> None:
    weight.data.mul_(-3)


def fused_step(weight: torch.Tensor) -> None:
    weight.grad = torch.ones_like(weight)
    torch.optim.SGD([weight], lr=1.0, fused=True).step()
    weight.grad = None


@pytest.mark.slow
@needs_what_is_saved
@pytest.mark.parametrize(
    ("family", "last_look", "write"),
    [
        ("resnet", "zero_grad", numpy_write),
        ("densenet", "forward", data_write),
        ("unet", "zero_grad", fused_step),
        ("vit", "zero_grad", data_write),
        ("gru", "forward", numpy_write),
        ("resnet", "forward", fused_step),
    ],
)
def test_a_write_into_what_is_saved_is_an_alarm(shell, family, last_look, write):
    """Between forward and backward, in the middle of a training; the gradients that follow are wrong."""
    training, clean = TRAININGS[family]("sgd"), TRAININGS[family]("sgd")
    weight = inner_weight(training.model)
    shell.namespace["training"] = training
    for i, (phase, _) in enumerate(zip(training.phases(2), clean.phases(2), strict=True)):
        if phase == last_look:
            assert not is_alarm(shown(shell, weight))
        if i == 4:
            write(weight)
            assert is_alarm(shown(shell, weight))
        if i == 5:
            break
    assert phase == "backward" and is_off(training, clean)


@needs_what_is_saved
def test_a_fused_step_before_a_backward_that_was_begun_is_an_alarm(shell):
    """Torch refuses any other optimizer there; this one it does not notice."""
    training, clean = TRAININGS["unet"]("fused"), TRAININGS["unet"]("fused")
    weight = inner_weight(training.model)
    shell.namespace["training"] = training
    for _ in zip(training.phases(1), clean.phases(1), strict=True):
        assert not is_alarm(shown(shell, weight))
        for p in training.model.parameters():
            p.grad = torch.ones_like(p)
        training.optimizer.step()
        training.optimizer.zero_grad()
        assert is_alarm(shown(shell, weight))
        training.loss.backward()
        clean.loss.backward()
        break
    assert is_off(training, clean)


@needs_what_is_saved
def test_running_statistics_that_an_evaluation_has_saved_are_an_alarm(shell):
    """A training forward overwrites them before the backward of the evaluation, and torch does not count that."""
    norm, other = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    x = torch.arange(12.0).view(4, 3)
    loss, clean = norm.eval()(x).square().sum(), other.eval()(x).square().sum()
    shell.namespace.update(norm=norm, loss=loss)
    assert not is_alarm(shown(shell, norm.running_var))
    norm.train()(x)
    assert is_alarm(shown(shell, norm.running_var))
    loss.backward()
    clean.backward()
    assert not torch.equal(norm.weight.grad, other.weight.grad)
    norm(x)
    assert not is_alarm(shown(shell, norm.running_var)), "nothing is saved any more"


@needs_what_is_saved
def test_running_statistics_that_only_a_training_has_saved_are_none(shell):
    """They are told to have changed, without being counted, and that is all; NumPy may write them as well."""
    norm = torch.nn.BatchNorm1d(3)
    x = torch.arange(12.0).view(4, 3)
    shell.namespace.update(norm=norm)
    shown(shell, norm.running_mean)
    shell.namespace["loss"] = norm(x).square().sum()
    for _ in range(2):
        card = shown(shell, norm.running_mean)
        assert "changed since" in card and "unseen by autograd" in card
        assert AMBER not in card and "saved for" not in card
        numpy_write(norm.running_mean)
