"""Units that give 0 at every position are counted per channel, against NumPy's own count."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
import torch
from made_passes import leaf
from torch import nn
from torch.utils.checkpoint import checkpoint

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
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 10), norm(*[10] * (norm is not nn.LazyBatchNorm1d)), nn.ReLU())
    with torch.no_grad():
        model(torch.randn(64, 4))
        model[1].bias[2:5] = -100
    with tnp.follow(model) as run:
        model(torch.randn(64, 4))
    assert run["2"].zero_units == ZeroUnits(3, 10, 64)
    assert run.problems == ["3 of 10 units of 2 (ReLU) were 0 at all 64 positions"]


@pytest.mark.parametrize(
    ("shape", "norm"),
    [
        ((64, 10), nn.GroupNorm(5, 10)),
        ((8, 10, 20), nn.GroupNorm(5, 10)),
        ((8, 10, 5, 6), nn.GroupNorm(5, 10)),
        ((8, 10, 3, 4, 5), nn.GroupNorm(5, 10)),
        ((8, 10, 20), nn.InstanceNorm1d(10, affine=True)),
        ((10, 50), nn.InstanceNorm1d(10, affine=True)),
        ((10, 5, 6), nn.InstanceNorm2d(10, affine=True)),
        ((8, 10, 20), nn.BatchNorm1d(10)),
    ],
)
def test_behind_a_module_with_channels_these_are_the_units(shape: tuple[int, ...], norm: nn.Module):
    """However many dimensions it is given, without a batch as well, and through what drops elements."""
    with torch.no_grad():
        norm.weight[2:5], norm.bias[2:5] = 0, -1
    for between in ((), (nn.Dropout(0.1),), (nn.ELU(), nn.Dropout(0.1))):
        model = nn.Sequential(norm, *between, nn.ReLU())
        with tnp.follow(model) as run:
            model(torch.randn(shape))
        assert run.calls[-1].zero_units == ZeroUnits(3, 10, math.prod(shape) // 10)


def test_what_is_given_less_than_it_takes_is_not_counted():
    """Nobody says which axis the units are."""
    model = nn.Sequential(nn.MaxPool1d(1), nn.ReLU())
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
    made = tuple(leaf(name, "ReLU", zero_in_all=ZeroUnits(*units), nth=nth, params=()) for name, units, nth in calls)
    return [one.sentence for one in dead_units(CallTree(PassRecord(made)))]


def test_the_finding_counts_units_and_positions():
    """Of several activations, it names each."""
    assert sentences(("mlp.1", (37, 512, 512), 0)) == ["37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions"]
    assert sentences(("a", (1, 8, 64), 0)) == ["1 of 8 units of a (ReLU) was 0 at all 64 positions"]
    assert sentences(("a", (6, 8, 64), 0), ("b", (4, 8, 64), 0)) == [
        "2 activations have units that were 0 at all positions: a (6 of 8), b (4 of 8)"
    ]


def test_what_may_be_chance_or_is_common_is_no_finding():
    """Few positions, few units; and all of them, which is told otherwise."""
    assert not sentences(("a", (4, 8, 31), 0))
    assert not sentences(("a", (4, 100, 512), 0))
    assert not sentences(("a", (8, 8, 64), 0))


def alive_in_turn(num_calls: int) -> tuple[nn.Module, list[torch.Tensor]]:
    """Return a model, and batches for each of which 4 others of its 20 units are alive, and 4 for none."""
    model = nn.Sequential(nn.Linear(4, 20, bias=False), nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(-1)
        model[0].weight[:16] = torch.eye(4).repeat_interleave(4, 0) * 2 - 1
    return model, [torch.eye(4)[k].repeat(64 * 4 // num_calls, 1) for k in range(4) for _ in range(num_calls // 4)]


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


def test_what_a_checkpoint_calls_again_is_counted_once():
    """With a call in evaluation, which is one of the pass as well."""
    model, batches = alive_in_turn(4)
    with tnp.follow(model) as run:
        for x in batches:
            checkpoint(model, x.requires_grad_(), use_reentrant=True).sum().backward()
        model.eval()(batches[0])
    assert run["1"].zero_in_all == ZeroUnits(4, 20, 320)
    assert len(run.find("1")) == 9
    y = checkpoint(model, batches[0], use_reentrant=True)
    with tnp.follow(model) as run:
        y.sum().backward()
    assert run["1"].zero_in_all == ZeroUnits(16, 20, 64)


def test_nothing_of_the_units_is_kept_when_the_pass_is_over():
    """The record has their numbers, and is made later."""
    model, batches = alive_in_turn(4)
    gc.collect()
    before = {id(one) for one in gc.get_objects() if type(one) is torch.Tensor}
    with tnp.follow(model) as run:
        for x in batches:
            model(x)
    del x
    assert not [one for one in gc.get_objects() if type(one) is torch.Tensor and id(one) not in before]
    assert run["1"].zero_in_all is not None


class Shares(nn.Module):
    """Uses one activation behind two layers, of which the first may be used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.act = nn.Linear(8, 8), nn.Linear(8, 8), nn.ReLU()

    def forward(self, x: torch.Tensor, num: int = 1) -> torch.Tensor:
        """Compute."""
        for _ in range(num):
            x = self.act(self.a(x))
        return self.act(self.b(x))


def test_an_activation_behind_two_modules_has_the_units_of_both():
    """Those of one behind the same module are the same each time."""
    model = Shares()
    with torch.no_grad():
        for one in model.parameters():
            one.fill_(0.1)
        model.a.bias[:2] = -100
    x = torch.rand(64, 8)
    for num in (1, 2):
        with tnp.follow(model) as run:
            model(x, num)
        assert run.problems[0] == f"2 of 8 units of act (ReLU) behind a were 0 at all {64 * num} positions"
    with torch.no_grad():
        model.b.bias[:3] = -100
    with tnp.follow(model) as run:
        model(x)
    told = "2 activations have units that were 0 at all positions: act behind a (2 of 8), act behind b (3 of 8)"
    assert run.problems == [told]


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
