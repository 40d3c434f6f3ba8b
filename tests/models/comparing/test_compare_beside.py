"""What containers hold beside their weights: plain values of one name are compared by value."""

from __future__ import annotations

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
        assert (found.equal, found.same_bits, found.beside) == (False, False, {"b": told})
        assert f"1 value differs beside the weights (b: {told})" in repr(found).replace("'b'", "b")
        assert told in weights_comparison_document(found).text()


def test_equal_values_and_numbers_of_groups_are_no_difference(tmp_path: Path):
    """As an integer is equal to a float; the learning rate of an optimizer changes from one checkpoint to the next."""
    t = torch.ones(2)
    assert tnp.compare({"a": t, "b": 2, "c": float("nan")}, {"a": t, "b": 2.0, "c": float("nan")}).same_bits
    saved = [{"model": {"a": t}, "optimizer": torch.optim.SGD([t], lr=lr).state_dict()} for lr in (0.1, 0.2)]
    assert tnp.compare(*saved).same_bits


def test_the_order_of_a_set_is_no_difference(tmp_path: Path):
    """It is another where the same elements came in another order, and in another process."""
    first, second = {"a": torch.ones(2), "b": {0, 8}}, {"a": torch.ones(2), "b": {8, 0}}
    assert tnp.compare(first, second).same_bits
    for name, one in (("first.pt", first), ("second.pt", second)):
        torch.save(one, tmp_path / name)
    assert tnp.compare(tmp_path / "first.pt", tmp_path / "second.pt").same_bits
