"""What containers hold beside their weights: plain values of one name are compared by value."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint import FileSystemWriter
from written_dcp import save

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
        assert f"1 value differs beside the weights (b: {told})" in repr(found).replace("'b'", "b")
        assert told in weights_comparison_document(found).text()


def test_equal_values_and_numbers_of_groups_are_no_difference(tmp_path: Path):
    """As an integer is equal to a float; the learning rate of an optimizer changes from one checkpoint to the next."""
    t = torch.ones(2)
    assert tnp.compare({"a": t, "b": 2, "c": float("nan")}, {"a": t, "b": 2.0, "c": float("nan")}).same_bits
    saved = [{"model": {"a": t}, "optimizer": torch.optim.SGD([t], lr=lr).state_dict()} for lr in (0.1, 0.2)]
    found = tnp.compare(*saved)
    assert found.same_bits
    assert found._not_compared == {"optimizer.param_groups.0.lr": "another value in the groups of an optimizer"}
    assert tnp.compare(saved[0], saved[0])._not_compared == {}


@pytest.mark.parametrize("row", [tuple, list])
def test_groups_of_a_live_optimizer_and_of_a_saved_one_are_told_apart(tmp_path: Path, row: type):
    """By the names that they have when saved, in a container or alone; what is the same is not spoken of."""
    model = torch.nn.Linear(2, 2)
    first, second, same = (
        torch.optim.Adam(model.parameters(), lr=lr, betas=row([0.9, 0.999])) for lr in (0.1, 0.2, 0.1)
    )
    second.param_groups[0]["betas"] = row([0.9, 0.5])
    torch.save({"model": model.state_dict(), "opt": first.state_dict()}, tmp_path / "both.pt")
    found = tnp.compare(tmp_path / "both.pt", {"model": model, "opt": second})
    assert found.same_bits
    assert found._not_compared == dict.fromkeys(
        ["opt.param_groups.0.lr", "opt.param_groups.0.betas.1"], "another value in the groups of an optimizer"
    )
    for one in (first, first.state_dict()):
        for other in (second, second.state_dict()):
            assert list(tnp.compare(one, other)._not_compared) == ["param_groups.0.lr", "param_groups.0.betas.1"]
        assert tnp.compare(one, same)._not_compared == {}


def test_what_is_not_compared_is_named():
    """An object is not looked into, and a value that one side has is no difference: both are said."""
    first = {"a": torch.ones(2), "b": torch.Generator(), "c": 1, "size": torch.Size([2])}
    second = {"a": torch.ones(2), "b": torch.Generator().manual_seed(3), "d": len, "size": torch.Size([2])}
    found = tnp.compare(first, second)
    assert found.same_bits
    assert found._not_compared == {
        "b": "of the class Generator",
        "c": "only in the first",
        "d": "only in the second",
    }
    assert "3 not compared beside the weights ('c': only in the first, …)" in repr(found)
    told = "1 only in the first: c; 1 of the class Generator: b; 1 only in the second: d"
    assert f"beside the weights, not compared: {told}" in weights_comparison_document(found).text()


class Counts(torch.optim.Optimizer):
    """An optimizer that keeps its step as an integer, as many do."""

    def __init__(self, params: list[torch.Tensor]) -> None:
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Count."""
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
    assert not found._not_compared


def test_values_of_folders_of_dcp_are_compared(tmp_path: Path):
    """With each other, and with what is in memory."""
    states = [{"a": torch.ones(2), "epoch": epoch} for epoch in (1, 2)]
    for name, state in zip(("first", "second"), states, strict=True):
        save(state, FileSystemWriter(tmp_path / name))
    for other in (tmp_path / "second", states[1]):
        assert tnp.compare(tmp_path / "first", other)._beside == {"epoch": "1 → 2"}
    assert tnp.compare(tmp_path / "first", states[0]).same_bits
