"""Tensors that a module holds unregistered: told where what came out of it is not finite, and never before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import tensornp as tnp

BAD = torch.tensor([0.0, 1.0, float("nan"), 3.0])
SAID = "neither a parameter nor a buffer, holds NaN now"


class Masked(nn.Module):
    """Adds what `read` finds among its attributes, to what a layer gives or gets."""

    def __init__(self, read: Any, *, is_first: bool = False, **attributes: Any) -> None:
        super().__init__()
        self.linear, self.read, self.is_first, self.last = nn.Linear(4, 4), read, is_first, None
        self.__dict__.update(attributes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_first:
            return self.linear(x + self.read(self))
        self.last = self.linear(x) + self.read(self)
        return self.last


@pytest.mark.parametrize(
    ("attributes", "read", "path"),
    [
        ({"mask": BAD}, lambda own: own.mask, "mask"),
        ({"masks": [torch.zeros(4), BAD]}, lambda own: own.masks[1], "masks[1]"),
        ({"config": SimpleNamespace(mask=BAD)}, lambda own: own.config.mask, "config.mask"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_nan_in_an_attribute_is_told_and_the_code_is_not_accused(
    attributes: dict[str, Any], read: Any, path: str, is_first: bool
):
    """Alone, in a list, and in an object; also where a layer inside is the first to get it."""
    model = nn.Sequential(Masked(read, is_first=is_first, **attributes), nn.ReLU())
    with tnp.follow() as run:
        model(torch.ones(3, 4))
    (told,) = run.problems
    assert f"its {path}, {SAID}" in told and "born" not in told
    assert [value.path for value in run["0"].attributes] == [f".{path}"]


def test_what_a_module_keeps_of_its_own_result_is_no_cause():
    """It was made inside the pass."""
    model = Masked(lambda _: torch.full((4,), float("nan")), mask=torch.zeros(4))
    for _ in range(2):
        with tnp.follow() as run:
            model(torch.ones(3, 4))
        assert run.problems[0].startswith("the first NaN was born in") and "holds" not in run.problems[0]


def test_attributes_are_not_looked_at_where_all_was_finite():
    model = Masked(lambda _: 0, mask=BAD, best=torch.tensor(float("inf")))
    with tnp.follow() as run:
        model(torch.ones(3, 4))
    assert not run.problems and not run[0].attributes
