"""What a comparison tells: what did not move and why, one memory, states, and plain values beside the weights."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from _pytest._io.saferepr import saferepr
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import why_unmoved
from tensornp.render.models.comparison import weights_comparison_document


def told(a: object, b: object) -> list[str]:
    return weights_comparison_document(tnp.compare(a, b)).text().splitlines()


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


def test_one_memory_on_both_sides_is_said_first():
    """A state dict shares it with its model, and a step changes both; a copy does not."""
    model, optimizer = trained()
    kept = model.state_dict()
    step(model, optimizer)
    found = tnp.compare(kept, model)
    assert found._same_memory == tuple(kept)
    lines = weights_comparison_document(found).text().splitlines()
    assert lines[1].startswith("10 weights of 10 are the same memory on both sides")
    assert "10 same memory ('0.weight', …)" in repr(found)
    copied = copy.deepcopy(kept)
    assert tnp.compare(copied, model)._same_memory == ()
    copied["0.weight"] = kept["0.weight"]
    assert told(copied, model)[1].startswith("1 weight of 10 is the same memory")
    assert not any("memory" in line for line in told(copy.deepcopy(kept), model))


def checkpoints() -> tuple[dict[str, object], dict[str, object]]:
    model, optimizer = trained()
    before = copy.deepcopy({"model": model.state_dict(), "opt": optimizer.state_dict()})
    step(model, optimizer)
    return before, {"model": model.state_dict(), "opt": optimizer.state_dict()}


STATES = {f"opt.state.*.{quantity} × 4" for quantity in ("exp_avg", "exp_avg_sq", "step")}


def test_states_of_optimizers_stand_behind_the_weights_and_move_no_median(tmp_path):
    """A row for each of their quantities; how far a weight moved is the same without an optimizer beside it."""
    before, after = checkpoints()
    found, alone = tnp.compare(before, after), tnp.compare(before["model"], after["model"])
    assert found._median_norms[""] == alone._median_norms[""]
    assert {name: found.moved[f"model.{name}"] for name in alone.moved} == alone.moved
    norms = [one.norm().item() for one in before["model"].values()]
    assert alone._median_norms[""] == pytest.approx(np.median(norms), rel=1e-6)
    squares = [one["exp_avg_sq"] for one in before["opt"]["state"].values()]
    assert found._median_norms["exp_avg_sq"] == pytest.approx(np.median([float(one.norm()) for one in squares]))
    assert "opt.state.0.step" not in found.moved
    names = found.changed()
    assert [name.startswith("model.") for name in names] == [True] * 4 + [False] * 12
    lines = weights_comparison_document(found).text().splitlines()
    assert lines[0].endswith(": 4 of 10 weights and 12 of 12 states differ")
    rows = [re.split(r"  +", line)[0] for line in lines]
    assert {row for row in rows if row.startswith("opt.")} == STATES
    [steps] = [line for line in lines if ".step" in line]
    assert steps.endswith("1 to 2")
    for name in ("before", "after"):
        torch.save({"before": before, "after": after}[name], tmp_path / f"{name}.pt")
    files = tnp.compare(tmp_path / "before.pt", tmp_path / "after.pt")
    assert files.changed() == names
    assert len(tnp.weights(before).find("opt.state.*.step")) == 4


def test_a_failed_assert_tells_figures_of_what_moved_most():
    """Pytest shows the begin and the end of a `repr`."""
    first = {"a": torch.ones(4), "b": torch.ones(4), "c": torch.ones(4), "d": torch.ones(4)}
    second = {"a": torch.ones(4), "b": torch.ones(4) * 1.5, "c": torch.ones(5), "d": torch.ones(4) + 0.25}
    said = repr(tnp.compare(first, second))
    assert said.startswith("WeightsComparison(not equal: 3 of 4 weights differ, 'c' (shapes differ: (4,) and (5,)), ")
    assert "max_abs 0.5, moved 50%), 'd' (nearly all elements differ, max_abs 0.25, moved 25%)" in said
    shown = saferepr(tnp.compare({"b": first["b"]}, {"b": second["b"]}), 240)
    assert "max_abs 0.5, moved 50%" in shown


def test_a_weight_of_another_dtype_has_a_row_of_its_own():
    """Among repeated layers that moved: no other row says that it was cast."""
    before = {f"blocks.{i}.weight": torch.randn(8, 4) for i in range(6)}
    after = {name: 1.01 * value for name, value in before.items()}
    after["blocks.1.weight"] = before["blocks.1.weight"].bfloat16()
    told = tnp.card(tnp.compare(before, after)).text.splitlines()
    (cast,) = [line for line in told if "cast" in line]
    assert cast.startswith("blocks.1.weight ") and "float32 and bfloat16" in cast
    assert [line for line in told if line.startswith("blocks.{0,2..5}.weight × 5")]


def test_layers_whose_weights_moved_in_another_order_share_rows():
    """The largest change is another weight in the second layer, and each weight has one row all the same."""
    before = {f"layers.{i}.{name}": torch.ones(4) for i in range(3) for name in ("weight", "bias")}
    after = {
        name: value + (0.1 if name in ("layers.1.bias", "layers.2.weight") else 0.2) for name, value in before.items()
    }
    told = tnp.card(tnp.compare(before, after)).text
    assert "layers.{0..2}.weight × 3" in told and "layers.{0..2}.bias × 3" in told


def test_a_row_tells_how_much_its_weights_differ():
    """A range if one moved much more than the others; one number if all moved alike."""
    before = {f"layers.{i}.weight": torch.ones(4) for i in range(6)}
    alike = {name: value * 1.1 for name, value in before.items()}
    assert " 10% " in tnp.card(tnp.compare(before, alike)).text
    tuned = alike | {"layers.2.weight": before["layers.2.weight"] * 2}
    assert "10% … 100%" in tnp.card(tnp.compare(before, tuned)).text


def test_shares_of_changed_elements_are_told_if_one_is_not_all():
    """No cell is left blank for a weight that changed throughout."""
    before = {"half": torch.ones(100), "all": torch.ones(100)}
    after = {name: value.clone() + 1 for name, value in before.items()}
    assert "not equal" not in tnp.card(tnp.compare(before, after)).text
    after["half"][:50] = 1
    rows = {line.split()[0]: line for line in tnp.card(tnp.compare(before, after)).text.splitlines()}
    assert " 100%" in rows["all"] and " 50%" in rows["half"]


class Net(torch.nn.Module):
    """A body and a head, of which the optimizer may be given one alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head, self.aux = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what does not depend on `aux`, whose gradient is 0."""
        x = self.body(x)
        return self.head(x) + 0 * self.aux(x)


def test_a_weight_that_the_optimizer_was_not_given_is_asked_about():
    """It has a gradient, whose norm is told, and did not move; one whose gradient is 0 is told from it."""
    model = Net()
    optimizer = torch.optim.SGD(model.body.parameters(), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    model(torch.ones(2, 6)).square().sum().backward()
    optimizer.step()
    with unchanged(*model.parameters()):
        lines = told(before, model)
    assert "2 weights unchanged, non-zero .grad: head.weight, head.bias" in lines
    assert "2 weights unchanged, zero .grad: aux.weight, aux.bias" in lines
    model.head.bias.requires_grad_(False)
    why = why_unmoved(tnp.compare(before, model))
    norm = float(model.head.weight.grad.norm())
    assert why["head.weight"] == f"non-zero .grad (norm {norm:.3g})"
    assert why["head.bias"] == "frozen"
    assert why["aux.bias"] == "zero .grad"
    assert "body.weight" not in why


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (2, 1, "2 → 1"),
        ("x", "y", "'x' → 'y'"),
        (None, 0, "None → 0"),
        (b"1", "1", "b'1' → '1'"),
        (1.5, float("nan"), "1.5 → nan"),
    ],
)
def test_a_plain_value_that_differs_is_told(a: object, b: object, told: str, tmp_path: Path):
    """In memory and in a file: the weights are the same, and what is compared is not."""
    first, second = ({"a": torch.ones(2), "b": value} for value in (a, b))
    torch.save(second, tmp_path / "second.pt")
    for other in (second, tmp_path / "second.pt"):
        found = tnp.compare(first, other)
        assert (found.equal, found.same_bits, found._beside) == (False, False, {"b": told})
        assert told in weights_comparison_document(found).text()


def test_equal_values_and_numbers_of_groups_are_no_difference():
    """As an integer is equal to a float; the learning rate of an optimizer changes from one checkpoint to the next."""
    t = torch.ones(2)
    assert tnp.compare({"a": t, "b": 2, "c": float("nan")}, {"a": t, "b": 2.0, "c": float("nan")}).same_bits
    saved = [{"model": {"a": t}, "optimizer": torch.optim.SGD([t], lr=lr).state_dict()} for lr in (0.1, 0.2)]
    assert tnp.compare(*saved).same_bits


class Counts(torch.optim.Optimizer):
    """An optimizer that keeps its step as an integer, as many do."""

    def __init__(self, params: list[torch.Tensor]) -> None:
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for one in self.param_groups[0]["params"]:
            state = self.state[one]
            state["step"] = state.get("step", 0) + 1
            state["average"] = torch.zeros_like(one)


def test_numbers_in_states_of_optimizers_are_compared(tmp_path: Path):
    """Live, saved, and in a container; they have the names that they have when saved."""
    model = torch.nn.Linear(2, 2)
    optimizer = Counts([*model.parameters()])
    optimizer.step()
    before, saved = copy.deepcopy(optimizer), copy.deepcopy(optimizer.state_dict())
    torch.save({"model": model.state_dict(), "optimizer": saved}, tmp_path / "both.pt")
    assert tnp.weights(optimizer).metadata["state.0.step"] == 1
    assert tnp.compare(before, optimizer).same_bits
    for state in optimizer.state.values():
        state["step"] = 9
    for one in (before, saved):
        found = tnp.compare(one, optimizer)
        assert (found.equal, found._beside) == (False, {"state.0.step": "1 → 9", "state.1.step": "1 → 9"})
    found = tnp.compare(tmp_path / "both.pt", {"model": model, "optimizer": optimizer})
    assert list(found._beside) == ["optimizer.state.0.step", "optimizer.state.1.step"]
