"""Training programs with every kind of look after each step: the bits are those of the training that nobody watches."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from child import in_fork
from gallery_child import shell
from IPython.utils.capture import capture_output
from torch import nn
from torch.utils.checkpoint import checkpoint

import tensornp as tnp

pytestmark = pytest.mark.slow
STEPS = 2 * int(float(os.environ.get("TENSORNP_ATTACK", "1")))
AT_ONCE = 4
"""Tensors at which each look looks one by one; all of them are in tables."""
Names = dict[str, Any]
"""What a notebook would call the parts of a training."""


def _steps(model: nn.Module, loss_of: Callable[[int], torch.Tensor], optimizer: Any, **more: Any) -> Iterator[Names]:
    """Train, and yield after each part of a step what there is."""
    names: Names = {"model": model, "optimizer": optimizer, **more}
    for step in range(STEPS):
        names["loss"] = loss_of(step)
        yield names
        names["loss"].backward()
        yield names
        optimizer.step()
        yield names
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        yield names


def convolutions() -> Iterator[Names]:
    """Batch norm in training, which writes its buffers without counting; a fused optimizer, which does not count."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    yield from _steps(model, lambda step: model(torch.randn(4, 3, 8, 8)).square().mean(), optimizer)


def attention() -> Iterator[Names]:
    """An encoder in bfloat16 by autocast, recomputed in backward, tied weights, an average of the weights."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    embedding, head = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
    head.weight = embedding.weight
    model = nn.ModuleDict({"embedding": embedding, "layer": layer, "head": head})
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)

    def loss_of(step: int) -> torch.Tensor:
        average.update_parameters(model)
        tokens = torch.randint(0, 10, (2, 5))
        with torch.autocast("cpu", torch.bfloat16):
            hidden = checkpoint(layer, embedding(tokens), use_reentrant=False)
            return nn.functional.cross_entropy(head(hidden).flatten(0, 1).float(), tokens.flatten())

    yield from _steps(model, loss_of, optimizer, average=average)


def two_players() -> Iterator[Names]:
    """Two optimizers, detached and accumulated gradients, a hook, spectral norm (which writes in forward)."""
    maker = nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Linear(6, 4))
    judge = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 1))
    maker[0].weight.register_hook(lambda grad: grad * 0.5)
    first, second = torch.optim.Adam(maker.parameters()), torch.optim.SGD(judge.parameters(), lr=0.1)

    def loss_of(step: int) -> torch.Tensor:
        made = maker(torch.randn(5, 3))
        second.zero_grad()
        (judge(made.detach()).mean() - judge(torch.randn(5, 4)).mean()).backward()
        second.step()
        return -judge(made).mean()

    yield from _steps(maker, loss_of, first, judge=judge, second=second)


def by_hand() -> Iterator[Names]:
    """Writes in place, `.data`, views and an inference tensor, as people write their own optimizers."""
    weight = torch.randn(6, 4, requires_grad=True)
    rows, average = weight.detach()[1:3], torch.zeros(6, 4)
    for _ in range(STEPS):
        loss = (torch.randn(2, 6) @ weight).exp().mean()
        names = {"weight": weight, "rows": rows, "loss": loss, "average": average, "model": {"weight": weight}}
        yield names
        loss.backward()
        yield names
        weight.data -= 0.1 * weight.grad
        average.lerp_(weight.detach(), 0.5)
        with torch.inference_mode():
            names["frozen"] = weight * 2
        yield names
        weight.grad = None


PROGRAMS = (convolutions, attention, two_players, by_hand)


def look(names: Names) -> None:
    ip = shell()
    ip.user_ns.update(names)
    tensors = {name: t for name, t in names.items() if isinstance(t, torch.Tensor)}
    for module in (m for m in names.values() if isinstance(m, nn.Module)):
        tensors |= dict(module.named_parameters()) | dict(module.named_buffers())
        tensors |= {f"{name}.grad": p.grad for name, p in module.named_parameters() if p.grad is not None}
    with capture_output() as captured:
        for obj in (*names.values(), list(tensors.values()), tensors):
            ip.display_formatter.format(obj)
        for t in random.sample(list(tensors.values()), min(AT_ONCE, len(tensors))):
            ip.display_formatter.format(t)
            tnp.inspect(t), tnp.plan(t, writeable=True), tnp.stats(t), tnp.locate(t, "max"), tnp.aliases(t, names)
            tnp.compare(t, t), tnp.to_numpy(t, copy=True), tnp.TensorWidget(t).close()
        explored = tnp.weights(names["model"])
        explored.scan(), tnp.compare(explored, explored)
        _ = [entry.to_numpy(copy=True) for entry in explored.values() if not entry.problem]
        for line in ("%tensors", "%weights model", "%tensordiff model model"):
            ip.run_cell(line, store_history=False).raise_error()
        if "optimizer" in names and names["optimizer"].state:
            ip.run_cell("%weights optimizer", store_history=False).raise_error()
    assert not captured.stderr, captured.stderr


def bits(obj: Any) -> Any:
    """Return all that a training has come to: bytes of parameters, buffers, gradients and states."""
    if isinstance(obj, torch.Tensor):
        grad = bits(obj.grad) if obj.is_leaf and obj.grad is not None else None
        return obj.detach().clone().view(-1).view(torch.uint8).tolist(), grad
    if isinstance(obj, nn.Module):
        return bits([*obj.parameters(), *obj.buffers()])
    if isinstance(obj, torch.optim.Optimizer):
        return bits(obj.state_dict())
    if isinstance(obj, dict):
        return {key: bits(value) for key, value in obj.items()}
    return [bits(one) for one in obj] if isinstance(obj, (list, tuple)) else obj


def outcome(program: Callable[[], Iterator[Names]], watch: Callable[[Names], None] | None) -> Any:
    """Return what comes of a program, and of the random numbers after it."""
    torch.manual_seed(0)
    for names in program():
        if watch is not None:
            watch(names)
    return bits(names), torch.randn(3).tolist()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@in_fork
def test_a_training_that_is_looked_at_after_each_step_is_the_same_to_the_bit(program):
    """Forward, backward, step and zero_grad, and all looks between them; with a watch on the model, too."""
    alone = outcome(program, None)
    assert outcome(program, None) == alone, "the program itself is repeatable"
    assert outcome(program, look) == alone
    watched = "weight" if program is by_hand else "model"

    def watch(names: Names) -> None:
        shell().user_ns.update(names)
        with capture_output():
            if not shell().user_ns.get("is_watched"):
                shell().run_cell(f"is_watched = True\n%tensorwatch {watched}").raise_error()
            shell().run_cell("pass").raise_error()

    assert outcome(program, watch) == alone
