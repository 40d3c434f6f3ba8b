"""Weights of a file of which many indices show one element: said at once, not read for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tensornp as tnp


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(1).expand(2**40),
        lambda: torch.ones(2**20, 1).expand(2**20, 2**20),
        lambda: torch.ones(2**21).as_strided((2**20, 2**20), (1, 1)),
    ],
)
def test_a_weight_of_a_file_that_repeats_without_end_is_refused_at_once(make, tmp_path: Path):
    """Beside itself and beside what lies in memory, as a tensor in memory is."""
    live, path = make(), tmp_path / "expanded.pt"
    torch.save({"a": live}, path)
    stored = tnp.weights(path)
    for a, b in ((stored, stored), (stored, {"a": live}), ({"a": live}, {"a": live})):
        assert "more than any memory holds" in tnp.compare(a, b).failed["a"]
    with pytest.raises(tnp.errors.BadRequestError, match="locate would read"):
        tnp.locate(stored["a"], "nan")
