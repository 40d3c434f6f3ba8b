"""How far weights have moved since the last scan, and what it keeps for that."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from accelerator import needs_card, register
from child import in_fork
from hypothesis import given, settings
from hypothesis import strategies as st
from lone_rank import LoneRank, needs_fsdp
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.live import last_scan
from tensornp.models.live.last_scan import PIECE_NUMEL, LastScan, most_of_each, num_sampled, pieces_of
from tensornp.models.live.update import Moved, Update, updates

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64]


def looked(last: LastScan, obj: Any, **options: Any) -> dict[str, Update]:
    """Return what a scan of `obj` says, as one that is told to look again would."""
    return last.updates_of(tnp.weights(obj).values(), **options)


def step(model: torch.nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sum(one.double().square().sum() for one in model.parameters()).backward()
    optimizer.step()


@given(st.integers(1, 2**20), st.integers(1, 2**20))
def test_pieces_lie_apart_and_are_as_many_as_asked_for(numel, most):
    """In order, within the weight; a sample of all is all."""
    num = num_sampled(numel, most)
    assert num == numel if most >= numel else 0 < num <= most
    pieces = [*pieces_of(numel, num)]
    assert sum(size for _, size in pieces) == num
    ends = [0, *(start + size for start, size in pieces)]
    assert all(start >= end for (start, _), end in zip(pieces, ends[:-1], strict=True))
    assert ends[-1] <= numel
    if num < numel:
        # One in each share, so that no part is left out.
        ends = [share * numel // len(pieces) for share in range(len(pieces) + 1)]
        assert all(ends[i] <= start < ends[i + 1] for i, (start, _) in enumerate(pieces))


@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(-5, 10**7))
def test_all_have_room_together_and_small_ones_first(sizes, limit):
    """What leaves room for larger ones is copied whole; where all fit, all are."""
    most = most_of_each(sizes, limit)
    assert sum(min(size, most) for size in sizes) <= max(limit, 0)
    assert most >= max(sizes, default=0) or sum(min(size, most + 1) for size in sizes) > limit


@settings(deadline=None)
@given(st.data(), st.sampled_from(FLOATS), st.lists(st.integers(1, 5), max_size=4))
def test_of_all_elements_it_is_exact(data, dtype, shape):
    """The norm of the difference over that before, of whatever dtype, strides and shape."""
    seed = data.draw(st.integers(0, 1000))
    torch.manual_seed(seed)
    order = data.draw(st.permutations(range(len(shape))))
    weight = torch.randn(shape).permute(order).to(dtype) if shape else torch.randn(()).to(dtype)
    last, before = LastScan(), weight.to(torch.complex128).clone()
    assert looked(last, {"w": weight}) == {}
    weight.copy_((torch.randn(weight.shape) * 3).to(dtype))
    found = looked(last, {"w": weight})["w"]
    difference = (weight.to(torch.complex128) - before).norm().item()
    assert found.size == pytest.approx(difference / (before.norm().item() or 1), rel=1e-6)
    assert not found.is_sampled
    # And it is kept as it is now.
    assert looked(last, {"w": weight})["w"].size == 0


def test_after_a_step_it_is_how_far_that_has_moved_each_weight():
    """What is frozen has not moved; integers are left out."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 40), torch.nn.BatchNorm1d(40), torch.nn.Linear(40, 2).bfloat16())
    model[0].bias.requires_grad_(False)
    before = {name: one.detach().double().clone() for name, one in model.state_dict().items()}
    last = LastScan()
    assert looked(last, model) == {}
    step(model)
    found = looked(last, model)
    floats = {name: one for name, one in before.items() if name != "1.num_batches_tracked"}
    assert found.keys() == floats.keys()
    middle = np.median([one.norm() for one in floats.values() if one.any()])
    for name, one in floats.items():
        difference = (model.state_dict()[name].double() - one).norm().item()
        assert found[name].size == pytest.approx(difference / max(one.norm().item(), middle), rel=1e-9)
    assert (found["0.bias"].text, found["0.weight"].text) == ("0%", "20%")
    assert found["0.weight"].title == f"‖Δ‖ {0.2 * before['0.weight'].norm():.3g} over the norm before, " + (
        f"{before['0.weight'].norm():.3g}"
    )


def test_what_was_zero_has_not_moved_infinitely():
    """It is told beside the median of all norms, as a comparison does; also where all were zero."""
    found = updates({"a": Moved(1, 0, 4, 4), "b": Moved(1, 8, 4, 4), "c": Moved(1, 2, 4, 4), "d": Moved(1, 4, 4, 4)})
    assert {name: one.size for name, one in found.items()} == {"a": 0.25, "b": 0.125, "c": 0.25, "d": 0.25}
    assert (found["a"].text, found["c"].text) == ("from 0", "25%")
    assert found["c"].title == "‖Δ‖ 1 over the median of all norms, 4; its own was 2, by 50% of which it moved"
    assert updates({"a": Moved(3, 0, 4, 4)}) == {"a": Update(3, "from 0", "‖Δ‖ 3, and all norms were 0")}
    assert updates({"a": Moved(0, 0, 4, 4)})["a"].text == "0%"
    assert updates({"a": Moved(math.inf, 1, 4, 4)})["a"].size is None


def test_a_sample_says_so():
    """The norms are what all would have; small weights are copied whole."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4000, 5000).half()
    last = LastScan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(last_scan, "MAX_NBYTES", 2**20)
        looked(last, model)
        assert 0.9 * 2**20 < last.nbytes <= 2**20
        before = model.weight.detach().double().norm().item()
        with torch.no_grad():
            model.weight.mul_(2)
        found = looked(last, model)
        again = looked(last, model)
    weight, bias = found["weight"], found["bias"]
    assert (weight.size, weight.text, weight.is_sampled) == (1, "≈100%", True)
    num = (last.nbytes - 2 * 5000) // 2
    told, norm = weight.title.split(" over the norm before, ")
    assert told == f"from {num:,} of 20,000,000 elements: ‖Δ‖ {norm}"
    assert float(norm) == pytest.approx(before, rel=0.02)
    assert (bias.text, bias.is_sampled) == ("0%", False)
    assert again["weight"].text == "≈0%"


def test_no_column_of_a_matrix_is_left_out_of_a_sample():
    """Pieces at equal distances would meet some columns only, where these fit the rows."""
    numel, width = 4096 * 3 * 512, 8 * PIECE_NUMEL
    starts = {start % width for start, _ in pieces_of(numel, numel // 12)}
    assert len({start * 8 // width for start in starts}) == 8


def test_memory_is_bounded_whatever_is_scanned(monkeypatch):
    """The copies of other models give way, the oldest first; those of the same are had anew."""
    monkeypatch.setattr(last_scan, "MAX_NBYTES", 1000)
    last = LastScan()
    models = [{"w": torch.ones(100)} for _ in range(4)]
    for model in models:
        looked(last, model)
        assert last.nbytes <= 1000
    assert looked(last, models[3])["w"].text == looked(last, models[2])["w"].text == "0%"
    assert looked(last, models[0]) == {}
    assert [*looked(last, {"a": torch.ones(1000), **models[0]})] == ["w", "a"]
    assert last.nbytes <= 1000


def test_what_was_scanned_alone_gives_way_to_the_rest(monkeypatch):
    """It is told once more from all that was kept, and from a sample then; there is never more than may be."""
    monkeypatch.setattr(last_scan, "MAX_NBYTES", 1000)
    held = {name: torch.arange(1.0, 251) for name in "ab"}
    last, nbytes = LastScan(), []
    looked(last, {"b": held["b"]})
    told = [looked(last, held, goes_on=lambda: nbytes.append(last.nbytes) or True) for _ in range(3)]
    for name, texts in (("a", ["", "≈0%", "≈0%"]), ("b", ["0%", "≈0%", "≈0%"])):
        assert [found[name].text for found in told] == texts
    assert max(nbytes) == 1000 == last.nbytes
    looked(last, {"a": held["a"]})
    assert looked(last, {"a": held["a"]})["a"].text == "0%"


def test_a_copy_goes_with_the_memory_and_keeps_no_tensor():
    """Nor is there a weak reference to a parameter, with which torch would refuse to swap it."""
    model = torch.nn.Linear(3, 4)
    last, gone = LastScan(), weakref.ref(model)
    looked(last, model)
    assert last.nbytes == 64
    torch.utils.swap_tensors(model.weight, torch.nn.Parameter(torch.ones(4, 3)))
    last.forget_gone()
    assert last.nbytes == 16
    del model
    gc.collect()
    assert gone() is None
    last.forget_gone()
    assert last.nbytes == 0


def test_what_is_not_known_is_not_told_and_says_why():
    """What is new, replaced, of another dtype, not finite, or of a class of its own."""
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    held = {"w": torch.ones(3), "b": torch.ones(3), "q": quantized, "n": torch.ones(2), "m": torch.ones(2)}
    held["own"] = torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {}))
    held["meta"] = torch.ones(2, device="meta")
    last = LastScan()
    looked(last, held)
    held["b"], held["m"] = held["b"].clone(), held["m"].double()
    held["n"][0], held["new"] = math.nan, torch.zeros(1)
    found = looked(last, held)
    assert found["w"].text == "0%"
    assert {name: one.title for name, one in found.items() if one.size is None} == {
        **dict.fromkeys(
            ("b", "m", "new"),
            "is not known: the last scan kept nothing of it; it is new, or of another shape, dtype or memory",
        ),
        "n": "is not known: not all of it is finite",
        **dict.fromkeys(("own", "meta"), "is not known: of this kind of tensor nothing is kept"),
    }
    assert not any(one.text for one in found.values() if one.size is None)


def test_tied_and_remade_views_are_the_same_memory():
    """A state dict that is made anew has other tensors over the same elements."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    last = LastScan()
    looked(last, model.state_dict())
    assert last.nbytes == 36
    with torch.no_grad():
        model[0].weight.mul_(2)
    found = looked(last, model)
    assert [*found] == ["0.weight", "1.weight"]
    assert {one.size for one in found.values()} == {1}


@pytest.mark.filterwarnings("ignore")
def test_looking_changes_nothing():
    """Neither the first time nor the next; no mode sees it."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2).bfloat16())
    explorer, last = tnp.weights(model), LastScan()
    with unchanged(*model.parameters()):
        last.updates_of(explorer.values())
    step(model)
    with unchanged(*model.parameters()):
        assert len(last.updates_of(explorer.values())) == 4


def test_it_ends_when_it_is_told_to():
    """What was not read is as it was: the next look tells of it."""
    held, last, left = {"a": torch.ones(3), "b": torch.ones(3)}, LastScan(), [True, False]
    looked(last, held)
    held["b"] *= 2
    assert [*looked(last, held, goes_on=lambda: left.pop(0))] == ["a"]
    assert looked(last, held)["b"].size == 1


@needs_fsdp
@in_fork
def test_of_what_is_spread_over_ranks_nothing_is_kept_or_gathered():
    """An error of this group would tell of a collective."""
    model, last = LoneRank().model(), LastScan()
    looked(last, model)
    assert (looked(last, model), last.nbytes) == ({}, 0)


@needs_card
@in_fork
def test_of_a_device_the_copies_come_to_the_host():
    """Of whatever strides and dtype, and no more than is kept; little is allocated there."""
    ledger = register()
    torch.manual_seed(0)
    held = {
        "w": torch.randn(300, 500), "t": torch.randn(40, 50).t(), "b": torch.randn(6).bfloat16(), "one": torch.ones(1)
    }  # fmt: skip
    last, other = LastScan(), LastScan()
    card = {name: one.to("card") for name, one in held.items()}
    ledger.clear()
    looked(last, card)
    assert ledger.to_host == last.nbytes == 4 * 300 * 500 + 4 * 2000 + 12 + 4
    looked(other, held)
    for name, one in held.items():
        one.mul_(2)
        card[name].copy_(one)
    assert {name: one.size for name, one in looked(last, card).items()} == {
        name: one.size for name, one in looked(other, held).items()
    }
    last_scan.MAX_NBYTES = 2**18
    sampled = LastScan()
    looked(sampled, card)
    ledger.clear()
    assert looked(sampled, card)["w"].text == "≈0%"
    assert ledger.to_host == sampled.nbytes <= 2**18
    assert ledger.allocated <= sampled.nbytes
