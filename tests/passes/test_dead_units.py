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
from tensornp.passes.verdict.dead_units import dead_told, dead_units


def count_of(module: nn.Module, x: torch.Tensor, *, is_followed_alone: bool = True) -> ZeroUnits | None:
    """Follow one call."""
    with tnp.follow(*[module] * is_followed_alone) as run:
        module(x)
    return run.calls[0].zero_units


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


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.LayerNorm, nn.LazyBatchNorm1d])
def test_units_behind_a_norm_of_a_batch_are_counted(norm):
    model = nn.Sequential(nn.Linear(4, 10), norm(*[10] * (norm is not nn.LazyBatchNorm1d)), nn.ReLU())
    with torch.no_grad():
        model(torch.randn(64, 4))
        model[1].bias[2:5] = -100
    with tnp.follow(model) as run:
        model(torch.randn(64, 4))
    assert run["2"].zero_units == ZeroUnits(3, 10, 64)
    assert run.problems == ["3 of 10 units of 2 (ReLU) were 0 at all 64 positions"]


def test_series_without_a_batch_are_not_counted():
    """Nobody says which axis the units are."""
    model = nn.Sequential(nn.InstanceNorm1d(6), nn.ReLU())
    with tnp.follow(model) as run:
        model(torch.randn(6, 50))
    assert run.calls[-1].zero_units is None


def test_series_behind_a_convolution_have_their_channels_first():
    """The same numbers behind a linear layer have them last: padding at one place in time is no dead unit."""
    conv = nn.Sequential(nn.Conv1d(4, 6, 1, bias=False), nn.BatchNorm1d(6), nn.ReLU())
    x = torch.randn(8, 4, 50)
    x[..., 40:] = 0
    with torch.no_grad():
        conv[0].weight[2] = 0
    conv.eval()
    with tnp.follow(conv) as run:
        conv(x)
    assert run["2"].zero_units == ZeroUnits(1, 6, 400)
    assert count_of(nn.ReLU(), conv(x)) == ZeroUnits(10, 50, 48)


def test_it_counts_in_place_too_and_changes_nothing():
    """By what the module gave."""
    x = torch.randn(64, 8)
    x[:, 3] = -1
    expected = x.relu()
    assert count_of(nn.ReLU(inplace=True), x) == ZeroUnits(1, 8, 64)
    assert torch.equal(x, expected)


def sentences(*calls: tuple[str, tuple[int, int, int], int]) -> list[str]:
    """Return what is found of activations: each by its name, its units and which call of it."""
    made = tuple(leaf(name, "ReLU", zero_units=ZeroUnits(*units), nth=nth, params=()) for name, units, nth in calls)
    return [one.sentence for one in dead_units(CallTree(PassRecord(made)))]


def test_the_finding_counts_units_and_positions():
    """Of several activations, it names each."""
    assert sentences(("mlp.1", (37, 512, 512), 0)) == ["37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions"]
    assert sentences(("a", (1, 8, 64), 0)) == ["1 of 8 units of a (ReLU) was 0 at all 64 positions"]
    assert sentences(("a", (6, 8, 64), 0), ("b", (4, 8, 64), 0)) == [
        "2 activations have units that were 0 at all positions: a (6 of 8), b (4 of 8)"
    ]


def test_what_may_be_chance_or_is_common_is_no_finding():
    """Few positions, few units; and all of them, which is told otherwise; and of several calls one that is well."""
    assert not sentences(("a", (4, 8, 31), 0))
    assert not sentences(("a", (4, 100, 512), 0))
    assert not sentences(("a", (8, 8, 64), 0))
    assert not sentences(("a", (4, 8, 64), 0), ("a", (0, 8, 64), 1))
    assert sentences(("a", (4, 8, 64), 0), ("a", (2, 8, 64), 1)) == [
        "2 of 8 units of a (ReLU, 2nd call) were 0 at all 64 positions"
    ]


def test_a_bias_that_kills_units_is_found():
    """In a pass, in its problems, and in the card of the call."""
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    with torch.no_grad():
        model[0].bias[:12] = -100
    with tnp.follow(model) as run:
        model(torch.randn(256, 16)).sum().backward()
    assert "12 of 64 units of 1 (ReLU) were 0 at all 256 positions" in run.problems
    assert "12 of 64 units were 0 at all 256 positions" in tnp.card(run["1"]).text


def test_dead_units_are_marked_in_the_tree():
    """In text and HTML; of several modules in one line, at most; of fewer than 1 in 20, none."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 8)) for _ in range(3)))
    with torch.no_grad():
        for number, block in enumerate(model):
            block[0].weight.mul_(0.1)
            block[0].bias.fill_(1.0)[: 5 * number] = -1000.0
    with tnp.follow(model) as run:
        model(torch.randn(64, 8))
    card = tnp.card(run)
    assert "up to 10 of 20 units dead" in card.text
    assert "up to 10 of 20 units dead" in card.html
    assert dead_told([run["1.1"]]) == "5 of 20 units dead"
    assert dead_told([run["0.1"]]) == dead_told([run["0.0"]]) == ""
