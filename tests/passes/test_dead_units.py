"""Units that give 0 at every position are counted per channel, against NumPy's own count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_passes import leaf
from torch import nn

import tensornp as tnp
from tensornp.passes.records import PassRecord, ZeroUnits
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.dead_units import dead_units


def count_of(module: nn.Module, x: torch.Tensor, *, is_followed_alone: bool = True) -> ZeroUnits | None:
    """Follow one call."""
    with tnp.follow(*[module] * is_followed_alone) as run:
        module(x)
    return run.calls[0].zero_units


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), nn.SiLU(), nn.ReLU6(), nn.Tanh(), nn.LeakyReLU()])
@pytest.mark.parametrize(("shape", "axis"), [((64, 20), 1), ((4, 16, 20), 2), ((3, 20, 5, 6), 1)])
def test_units_that_are_0_throughout_are_counted(activation, shape, axis, dtype):
    """On the last axis, and of images on the second; also where numbers are negative."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    dead = [1, 4, 7]
    x.movedim(axis, 0)[dead] = 0
    given = np.moveaxis(activation(x).float().detach().numpy(), axis, 0).reshape(20, -1)
    expected = int((given == 0).all(1).sum())
    assert expected == len(dead)
    assert count_of(activation, x) == ZeroUnits(expected, 20, x.numel() // 20)
    assert count_of(activation, x.movedim(0, -1).contiguous().movedim(-1, 0)) == ZeroUnits(
        expected, 20, x.numel() // 20
    )


def test_what_is_no_activation_or_has_too_many_units_is_not_counted():
    """Nor one position, nor what has no values."""
    assert count_of(nn.Identity(), torch.zeros(8, 4)) is None
    assert count_of(nn.ReLU(), torch.zeros(2, 4097)) is None
    assert count_of(nn.ReLU(), torch.zeros(2, 4096)) == ZeroUnits(4096, 4096, 2)
    assert count_of(nn.ReLU(), torch.zeros(5)) is None
    assert count_of(nn.ReLU(), torch.zeros(1, 5)) is None
    assert count_of(nn.ReLU(), torch.zeros(0, 5)) is None
    assert count_of(nn.ReLU(), torch.zeros(3, 0)) is None
    assert count_of(nn.ReLU(), torch.zeros(3, 5, device="meta")) is None
    assert count_of(nn.ReLU(), torch.zeros(3, 5, dtype=torch.int32)) is None
    assert count_of(nn.ReLU(), torch.full((3, 5), float("nan"))) == ZeroUnits(0, 5, 3)


def sentences(*calls: tuple[str, tuple[int, int, int], int]) -> list[str]:
    """Return what is found of activations: each by its name, its units and which call of it."""
    made = tuple(leaf(name, "ReLU", zero_in_all=ZeroUnits(*units), nth=nth, params=()) for name, units, nth in calls)
    return [one.sentence for one in dead_units(CallTree(PassRecord(made)))]


def test_the_finding_counts_units_and_positions():
    """Of several activations, it names each."""
    assert sentences(("mlp.1", (37, 512, 512), 0)) == ["37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions"]
    assert sentences(("a", (1, 8, 64), 0)) == ["1 of 8 units of a (ReLU) was 0 at all 64 positions"]
    assert sentences(("a", (6, 8, 64), 0), ("b", (4, 8, 64), 0)) == [
        "2 activations have units that were 0 at all positions: a (6 of 8), b (4 of 8)"
    ]


def alive_in_turn(num_calls: int) -> tuple[nn.Module, list[torch.Tensor]]:
    """Return a model, and batches for each of which 4 others of its 20 units are alive, and 4 for none."""
    model = nn.Sequential(nn.Linear(4, 20, bias=False), nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(-1)
        model[0].weight[:16] = torch.eye(4).repeat_interleave(4, 0) * 2 - 1
    return model, [torch.eye(4)[k].repeat(64 * 4 // num_calls, 1) for k in range(4) for _ in range(num_calls // 4)]


@pytest.mark.slow
@pytest.mark.parametrize("num_calls", [4, 256])
def test_over_several_calls_those_units_are_dead_that_were_0_in_each(num_calls: int):
    """At the positions of all, also where each call has one alone; a call by itself has its own count."""
    model, batches = alive_in_turn(num_calls)
    with tnp.follow(model) as run:
        for x in batches:
            model(x)
    assert run.problems == ["4 of 20 units of 1 (ReLU) were 0 at all 256 positions"]
    assert "4 of 20 units dead" in tnp.card(run).text
    assert run["1"].zero_units == (ZeroUnits(16, 20, 64) if num_calls == 4 else None)
    assert run["1"].zero_in_all == ZeroUnits(4, 20, 256)
    with torch.no_grad():
        model[0].weight[16:] = 1
    with tnp.follow(model) as run:
        for x in batches:
            model(x)
    assert run.problems == []
