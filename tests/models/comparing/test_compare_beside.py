"""What containers hold beside their weights: plain values of one name are compared by value."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

import tensornp as tnp
from tensornp.render.models.comparison import weights_comparison_document


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
