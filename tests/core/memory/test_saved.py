"""What backward has saved, proven by gradients: a NumPy write is made, and they are right or wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from older import needs_what_is_saved
from torch.autograd.graph import saved_tensors_hooks

import tensornp as tnp
from tensornp.core.memory.saved import saved_for

pytestmark = needs_what_is_saved
F = torch.nn.functional


class Cube(torch.autograd.Function):
    """A function of a user's that saves its input."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def leaves() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"x": (1, 2, 4, 4), "w": (3, 2, 2, 2), "v": (4, 4)}
    return {n: torch.rand(s, generator=generator).add_(0.5).requires_grad_() for n, s in shapes.items()}


FORWARDS: dict[str, Callable[[dict[str, torch.Tensor]], torch.Tensor]] = {
    "exp": lambda t: t["x"].exp(),
    "sin": lambda t: t["x"].sin(),
    "add": lambda t: t["x"] + t["v"],
    "mul": lambda t: t["x"] * t["v"],
    "mul by a number": lambda t: t["x"] * 3,
    "matmul": lambda t: t["x"] @ t["v"],
    "relu": lambda t: (t["x"] - 1).relu(),
    "conv": lambda t: F.conv2d(t["x"], t["w"]),
    "softmax": lambda t: t["x"].softmax(-1),
    "layer norm": lambda t: F.layer_norm(t["x"], (4,)),
    "custom": lambda t: Cube.apply(t["x"]),
    "a view of it": lambda t: t["x"][0, 1].T.exp(),
    "sum": lambda t: t["x"].sum((0, 1)),
    "max": lambda t: t["x"].amax(-1),
    "cat": lambda t: torch.cat([t["x"], t["x"].exp()]),
    "two deep": lambda t: t["x"].exp().sin(),
    "power": lambda t: t["v"] ** 2,
}


def gradients(name: str, spoiled: str = "") -> tuple[list[torch.Tensor], tuple[str, ...]]:
    """Return the gradients of all leaves, and what was saved of the tensor into which NumPy wrote before backward."""
    t = leaves()
    y = t["y"] = FORWARDS[name](t)
    saved: tuple[str, ...] = ()
    if spoiled:
        victim = t[spoiled]
        saved = saved_for(victim, [y]).names
        array = tnp.to_numpy(victim, copy=False, writeable=True)
        array[...] = array[..., ::-1] * -1.7 - 0.3
    (y * torch.arange(y.numel()).view(y.shape)).sum().backward()
    return [g.grad if g.grad is not None else torch.zeros(1) for g in (t["x"], t["w"], t["v"])], saved


@pytest.mark.parametrize("victim", ["x", "w", "v", "y"])
@pytest.mark.parametrize("name", FORWARDS)
def test_it_is_saved_exactly_where_a_write_makes_gradients_wrong(name, victim):
    """For inputs, weights and results of each operation; no version check notices the write."""
    clean, _ = gradients(name)
    after, saved = gradients(name, victim)
    are_wrong = any(not torch.equal(a, b) for a, b in zip(clean, after, strict=True))
    assert bool(saved) == are_wrong


def norm_gradients(spoils: bool, create_graph: bool) -> tuple[Any, tuple[str, ...]]:
    """Return the gradients through a batch norm, and what has saved its running statistics, which NumPy overwrites."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(4, 3, generator=generator).requires_grad_()
    norm = torch.nn.BatchNorm1d(3)
    norm(torch.rand(4, 3, generator=generator))
    y = norm(x) ** 3
    if create_graph:
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        y = grad**2
    saved = {*saved_for(norm.running_mean, [y]).names, *saved_for(norm.running_var, [y]).names}
    if spoils:
        norm.running_mean.numpy()[...] = 7
        norm.running_var.numpy()[...] = 0.1
    y.sum().backward()
    return [x.grad, norm.weight.grad], tuple(saved)


@pytest.mark.parametrize("create_graph", [False, True])
def test_running_statistics_of_a_training_are_not_saved(create_graph):
    """Torch keeps them, and backward asks those of the batch."""
    clean, _ = norm_gradients(spoils=False, create_graph=create_graph)
    after, saved = norm_gradients(spoils=True, create_graph=create_graph)
    assert all(torch.equal(a, b) for a, b in zip(clean, after, strict=True))
    assert not saved


def test_the_operation_is_named():
    """As the badge says it, the nearest first."""
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    assert saved_for(y, []).names == ("ExpBackward0",)
    assert saved_for(x, [y.sin(), x * y]).names == ("MulBackward0",)
    assert saved_for(y, [y.sin(), x * y]).names == ("ExpBackward0", "SinBackward0", "MulBackward0")
    assert saved_for(x, [Cube.apply(x)]).names == ("CubeBackward",)


def test_after_backward_nothing_is_saved():
    """It was freed; with retain_graph it was not, and a second backward would use it."""
    for retain in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y.sum().backward(retain_graph=retain)
        assert saved_for(y, []).names == (("ExpBackward0",) if retain else ())


def test_other_elements_of_the_storage_are_not_saved():
    """Disjoint halves, interleaved columns; an overlap counts."""
    base = torch.ones(4, 6)
    x = base[:, ::2].requires_grad_()
    y = x.sin()
    assert saved_for(base[:, 1::2], [y]).names == ()
    assert saved_for(base[:, 1:3], [y]).names == ("SinBackward0",)
    assert saved_for(base, [y]).names == ("SinBackward0",)
    assert saved_for(torch.ones(4, 6), [y]).names == ()


def test_no_hook_runs_and_nothing_is_unpacked():
    """Hooks of saved tensors are the user's code; what they packed into something else is not seen."""
    calls: list[str] = []
    x = torch.ones(3, requires_grad=True)

    def pack(t: torch.Tensor) -> torch.Tensor:
        calls.append("pack")
        return t * 1

    def unpack(t: torch.Tensor) -> torch.Tensor:
        calls.append("unpack")
        return t

    with saved_tensors_hooks(pack, unpack):
        y = x.sin()
        before = list(calls)
        found = saved_for(x, [y]).names
    assert calls == before == ["pack"]
    # What was packed is a copy: a write to x is harmless.
    tnp.to_numpy(x, copy=False, writeable=True)[:] = 9
    y.sum().backward()
    assert (torch.allclose(x.grad, torch.ones(3).cos()), found) == (True, ())


def test_a_view_changed_under_no_grad_is_no_error():
    """Torch raises when its grad_fn is asked for."""
    x = torch.ones(4, requires_grad=True)
    (a, b) = (x * 1).chunk(2)
    with torch.no_grad():
        a.mul_(2)
    assert saved_for(b, [a, b]).names == ()


def test_the_plan_and_the_receipt_tell():
    """A writeable array warns, a read-only one says that NumPy cannot spoil; both name the operation."""
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    share = tnp.plan(y, copy=False, writeable=True)
    assert "saved for ExpBackward0: a NumPy write here gives wrong gradients without an error" in share.warnings
    assert not any("silently" in warning for warning in share.warnings), "said once"
    assert tnp.plan(y, copy=True, writeable=True).warnings == ()
    y.sum().backward()
    assert not any("saved for" in warning for warning in tnp.plan(y, copy=False, writeable=True).warnings)
