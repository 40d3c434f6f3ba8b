"""What a comparison of two models tells: what did not move and why, one memory, and states apart from weights."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import pytest
import torch
from _pytest._io.saferepr import saferepr
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.summary.comparison import ComparisonSummary
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.render.models.comparison import live_rows, weights_comparison_document
from tensornp.render.models.comparison_row import cut_apart
from tensornp.render.values.comparison import comparison_document


def compared(a: object, b: object) -> WeightsComparison:
    found = tnp.compare(a, b)
    assert isinstance(found, WeightsComparison)
    return found


def told(a: object, b: object) -> list[str]:
    return weights_comparison_document(compared(a, b)).text().splitlines()


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model of which layers are frozen and one is not used, after a step."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(6, 6) for _ in range(4)])
    model.aux = torch.nn.Linear(2, 2)
    model[1].requires_grad_(False)
    model[3].requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    return model, optimizer


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    hidden = torch.ones(2, 6)
    for layer in list(model)[:4]:
        hidden = layer(hidden)
    hidden.square().sum().backward()
    optimizer.step()


def test_what_did_not_move_is_named_and_why():
    """By folded names in text and page; of a live model, right under the verdict, what is frozen or has no gradient."""
    model, optimizer = trained()
    before = copy.deepcopy(model.state_dict())
    step(model, optimizer)
    with unchanged(*model.parameters()):
        lines = told(before, model)
    assert lines[0] == "OrderedDict and Sequential: 4 of 10 weights differ"
    names = "{1,3}.weight × 2, {1,3}.bias × 2, aux.weight, aux.bias"
    assert f"6 weights with the same bits: {names}" in lines
    frozen = "4 frozen (requires_grad=False): {1,3}.weight × 2, {1,3}.bias × 2"
    why = [frozen, "2 trainable weights did not move and have no .grad now: aux.weight, aux.bias"]
    assert lines[1:3] == why
    assert names in weights_comparison_document(compared(before, model)).html()
    assert told(model, before)[1:3] == why
    # Where no weight has a gradient, that one has none tells nothing.
    optimizer.zero_grad()
    assert told(before, model)[1] == frozen
    assert "frozen" not in "".join(told(before, model.state_dict()))


def test_frozen_layers_are_named_as_a_whole():
    """Where more of their weights are frozen than are named one by one; what is left out is counted in weights."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16)
    model = torch.nn.ModuleDict(
        {"layers": torch.nn.ModuleList(copy.deepcopy(layer) for _ in range(6)), "head": torch.nn.Linear(8, 2)}
    )
    for number in (1, 4):
        model["layers"][number].requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        for one in model.parameters():
            one.add_(1.0 if one.requires_grad else 0.0)
    lines = told(before, model)
    assert lines[1] == "24 frozen (requires_grad=False): in layers.{1,4}"
    assert next(line for line in lines if "same bits" in line).endswith(" and 8 more")


def test_a_page_has_a_row_for_what_did_not_move():
    """Behind what differs, and folds that lead to all of them."""
    before = {f"layers.{i}.weight": torch.full((3,), float(i)) for i in range(40)}
    after = {name: one + (i < 2) for i, (name, one) in enumerate(before.items())}
    live = live_rows(compared(before, after), 30)
    assert sorted(live.names[:2]) == ["layers.0.weight", "layers.1.weight"]
    assert (len(live.names), live.num_equal, live.printed) == (30, 38, [[0, 1]])
    [fold] = live.folds
    assert fold.said == "38 weights with the same bits: layers.{2..39}.weight × 38"
    assert fold.members == [list(range(2, 30))]
    [row] = fold.rows
    assert row["cells"][0] == "layers.{2..39}.weight × 38"
    few = live_rows(
        compared(
            {f"{'x' * i}_": torch.zeros(i) for i in range(1, 30)}, {f"{'x' * i}_": torch.ones(i) for i in range(1, 30)}
        ),
        2000,
    )
    assert [(fold.said, len(fold.members)) for fold in few.folds] == [("… 4 more weights that moved less", 4)]


def test_one_memory_on_both_sides_is_said_first():
    """A state dict shares it with its model, and a step changes both; a copy does not."""
    model, optimizer = trained()
    kept = model.state_dict()
    step(model, optimizer)
    found = compared(kept, model)
    assert found._same_memory == tuple(kept)
    lines = weights_comparison_document(found).text().splitlines()
    assert lines[1] == (
        "both sides are the same memory: b.state_dict() shares it; copy.deepcopy(b.state_dict()) before the step keeps "
        "what was"
    )
    assert "background-color" in weights_comparison_document(found).html().partition("both sides are")[0][-100:]
    assert "10 same memory ('0.weight', …)" in repr(found)
    sides = tnp.weights(kept, expression="sd"), tnp.weights(model, expression="net")
    assert "copy.deepcopy(net.state_dict())" in told(*sides)[1]
    nets = [model]
    assert "nets[0].state_dict() shares it" in told(kept, tnp.weights(nets[0], expression="nets[0]"))[1]
    copied = copy.deepcopy(kept)
    assert compared(copied, model)._same_memory == ()
    copied["0.weight"] = kept["0.weight"]
    assert told(copied, model)[1] == "1 weight of both sides is one memory"
    assert not any("memory" in line for line in told(copy.deepcopy(kept), model))


def test_what_would_keep_a_copy_of_a_dictionary_is_what_can_be_called():
    """A state dict, a batch and a list have no `state_dict`; it is named where it was typed, and no name made up."""
    model = torch.nn.Linear(2, 2)
    before, after, made = model.state_dict(), model.state_dict(), [model(torch.ones(1, 2))]

    def cure(*sides: tuple[object, str]) -> str:
        return told(*(tnp.weights(one, expression=name) for one, name in sides))[1].partition(": ")[2]

    by = "a copy that is made before a step, as by {}, keeps what was"
    assert cure((before, "before"), (after, "after")) == by.format("copy.deepcopy(before)")
    assert cure(([*before.values()], "one"), ([*after.values()], "two")) == by.format("copy.deepcopy(one)")
    assert cure((made, "made"), (made, "made")) == by.format(".clone() of each")
    base = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():
        no_longer_known = [base[:2]]
    base.mul_(2)
    assert cure((no_longer_known, "view"), (no_longer_known, "view")) == by.format(".clone() of each")
    typed = "m.state_dict()"
    assert (
        cure((before, "before"), (after, typed))
        == f"{typed} shares it; copy.deepcopy({typed}) before the step keeps what was"
    )
    assert told(before, after)[1].endswith(by.format("copy.deepcopy"))


@pytest.mark.parametrize(
    ("make", "is_same"),
    [
        (lambda t: t, True),
        (lambda t: t.detach(), True),
        (lambda t: t.numpy(), True),
        (lambda t: t.view(6, 1)[:, 0], True),
        (lambda t: t.clone(), False),
        (lambda t: t.flip(0), False),
        (lambda t: torch.cat([t, t])[6:], False),
        (lambda t: t.view(torch.int32).view(torch.float32), True),
    ],
    ids=["itself", "detached", "array", "view", "clone", "flip", "copied part", "viewed twice"],
)
def test_two_tensors_of_one_memory_have_a_note(make, is_same):
    """The same places of it: that equal values lie elsewhere is no news."""
    one = torch.arange(6.0)
    found = tnp.compare(one, make(one))
    assert found._note.startswith("both are the same memory: ") is is_same
    assert ("both are the same memory" in repr(found)) is is_same
    shown = comparison_document(ComparisonSummary(("a", "b"), found))
    assert ("same memory" in shown.text().splitlines()[1]) is is_same


def test_the_rows_of_one_array_that_differ_are_no_one_memory():
    """Nor parts of one storage that overlap."""
    whole = torch.zeros(8)
    assert tnp.compare(whole[:4], whole[4:])._note == ""
    assert tnp.compare(whole[:6], whole[2:])._note == ""


def checkpoints() -> tuple[dict[str, object], dict[str, object]]:
    model, optimizer = trained()
    before = copy.deepcopy({"model": model.state_dict(), "opt": optimizer.state_dict()})
    step(model, optimizer)
    return before, {"model": model.state_dict(), "opt": optimizer.state_dict()}


STATES = {f"opt.state.*.{quantity} × 4" for quantity in ("exp_avg", "exp_avg_sq", "step")}


def test_states_of_optimizers_stand_behind_the_weights_and_move_no_median(tmp_path):
    """A row for each of their quantities; how far a weight moved is the same without an optimizer beside it."""
    before, after = checkpoints()
    found, alone = compared(before, after), compared(before["model"], after["model"])
    assert found._median_norm == alone._median_norm
    assert {name: found.moved[f"model.{name}"] for name in alone.moved} == alone.moved
    norms = [one.norm().item() for one in before["model"].values()]
    assert alone._median_norm == pytest.approx(np.median(norms), rel=1e-6)
    squares = [one["exp_avg_sq"] for one in before["opt"]["state"].values()]
    assert found._floor_of("opt.state.0.exp_avg_sq") == pytest.approx(np.median([float(one.norm()) for one in squares]))
    assert "opt.state.0.step" not in found.moved
    names = found.changed()
    assert [name.startswith("model.") for name in names] == [True] * 4 + [False] * 12
    lines = weights_comparison_document(found).text().splitlines()
    assert lines[0].endswith(": 4 of 10 weights and 12 of 12 states differ")
    assert lines[1].startswith("nearly all elements differ in 4 weights")
    rows = [re.split(r"  +", line)[0] for line in lines[4:]]
    assert {row for row in rows if row.startswith("opt.")} == STATES
    [steps] = [line for line in lines if ".step" in line]
    assert steps.endswith("1 to 2")
    for name in ("before", "after"):
        torch.save({"before": before, "after": after}[name], tmp_path / f"{name}.pt")
    files = compared(tmp_path / "before.pt", tmp_path / "after.pt")
    assert files.changed() == names
    assert len(tnp.weights(before).find("opt.state.*.step")) == 4


def test_a_state_says_whose_it_is():
    """Where its optimizer was given names, or the model is told."""
    model, optimizer = trained()
    before = copy.deepcopy(optimizer.state_dict())
    step(model, optimizer)
    sides = [tnp.weights(one, model=model) for one in (before, optimizer.state_dict())]
    found = compared(*sides)
    assert told(*sides)[0].endswith("12 of 12 states differ")
    live = live_rows(found, 100)
    cells = {name: row["cells"] for name, row in zip(live.names, live.rows, strict=True)}
    assert cells["state.0.step"][-1] == "of '0.weight', 1 to 2"
    assert live.noun == "state"


def test_the_share_of_its_own_norm_stands_beside_that_of_the_median():
    """Of what is far smaller than most; its cell says so."""
    before = {"small": torch.full((4,), 0.01), **{f"w{'x' * i}": torch.full((4,), 1.0 + i) for i in range(3)}}
    after = {name: one + 0.002 for name, one in before.items()}
    found = compared(before, after)
    assert found._is_floored("small")
    assert found.moved["small"] == pytest.approx(0.002 / 1.5, rel=1e-3)
    rows = weights_comparison_document(found).text().splitlines()
    row = next(line for line in rows if line.startswith("small"))
    assert re.split(r"  +", row)[1:3] == ["0.13%", "20%"]
    assert 'title="of the median norm, 3"' in weights_comparison_document(found).html()
    assert not compared({"w": torch.ones(3)}, {"w": torch.ones(3) * 2})._is_floored("w")


def test_what_moved_where_all_was_0_is_told_as_no_share():
    """There is no norm beside which it has moved; it is sorted by how far, and what it was is said."""
    before = {f"{i}.w": torch.zeros(4) for i in range(3)} | {"b": torch.zeros(2), "still": torch.zeros(3)}
    after = {name: torch.full_like(one, int(name[0]) if name[0].isdecimal() else 9) for name, one in before.items()}
    after["still"] = before["still"].clone()
    found = compared(before, after)
    assert (list(found), found.moved) == (["b", "2.w", "1.w", "0.w", "still"], {"0.w": 0.0, "still": 0.0})
    assert "moved" not in repr(found)
    lines = weights_comparison_document(found).text().splitlines()
    assert lines[1:3] == ["nearly all elements differ in 3 weights", "≤: the largest of a line"]
    assert re.split(r"  +", lines[3])[:3] == ["name", "‖Δ‖", "‖before‖"]
    assert re.split(r"  +", lines[4])[:3] == ["b", "12.7", "from 0"]
    assert re.split(r"  +", lines[5])[:3] == ["{1..2}.w × 2", "≤4", "from 0"]
    lines = told({"w": torch.zeros(4)}, {"w": torch.ones(4)})
    assert [re.split(r"  +", line)[0] for line in lines[1:]] == ["name", "w"]


def test_that_nearly_all_elements_differ_is_said_of_integers_too():
    """Of several it stands above their rows."""
    first = {"a": torch.arange(8), "b": torch.arange(9)}
    assert told(first, {name: one + 1 for name, one in first.items()})[1] == "nearly all elements differ in 2 weights"


def test_long_names_keep_what_tells_them_apart():
    """Wherever it is; and equal names are equal."""
    parts = ("query", "quiet", "key", "value")
    names = [f"{'encoder.' * 12}layer.{part}.{'block.' * 12}weight" for part in parts]
    shown = cut_apart([*names, "head"])
    assert len(set(shown)) == 5
    assert all(len(name) <= 120 for name in shown)
    assert all(f"layer.{part}." in name for part, name in zip(parts, shown, strict=False))
    before = dict.fromkeys([*names, "head"], torch.ones(2))
    after = {name: one + (name == "head") for name, one in before.items()}
    line = next(line for line in told(before, copy.deepcopy(after)) if "with the same bits" in line)
    assert re.findall(r"r\.(\w+)\.block", line) == list(parts)
    assert cut_apart(["head", "a" * 130]) == ["head", f"{'a' * 60}…{'a' * 59}"]


def test_a_failed_assert_tells_figures_of_what_moved_most():
    """Pytest shows the begin and the end of a `repr`."""
    first = {"a": torch.ones(4), "b": torch.ones(4), "c": torch.ones(4), "d": torch.ones(4)}
    second = {"a": torch.ones(4), "b": torch.ones(4) * 1.5, "c": torch.ones(5), "d": torch.ones(4) + 0.25}
    said = repr(tnp.compare(first, second))
    assert said.startswith("WeightsComparison(not equal: 3 of 4 weights differ, 'c' (shapes differ: (4,) and (5,)), ")
    assert "'b' (scaled by 1.5, max_abs 0.5, moved 50%), 'd' (scaled by 1.25, max_abs 0.25, moved 25%)" in said
    shown = saferepr(tnp.compare({"b": first["b"]}, {"b": second["b"]}), 240)
    assert "max_abs 0.5, moved 50%" in shown


@pytest.mark.parametrize(("value", "moved"), [(1.0, ""), (3.0, ", max_abs 2, moved ")])
def test_a_failed_assert_tells_of_a_nan_before_it_tells_what_moved(value, moved):
    """And not that the rest moved by nothing."""
    first, second = {"a": torch.ones(4)}, {"a": torch.tensor([1.0, math.nan, 1.0, 1.0]) * value}
    assert f", only_finite_first 1{moved or ')'}" in repr(tnp.compare(first, second))
    assert f", only_finite_second 1{moved or ')'}" in repr(tnp.compare(second, first))
