"""Names that repeat are folded: what is unlike stands alone, and nothing is lost."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.trees.fold import folded


def patterns(names: dict[str, int]) -> list[str]:
    return [
        row.pattern for row in folded(tnp.weights({name: torch.zeros(size) for name, size in names.items()}).values())
    ]


def test_numbered_parts_that_are_alike_are_one_row():
    """Ranges with gaps; one that is unlike the others is seen."""
    names = {f"layers.{i}.{part}": 4 for i in range(6) for part in ("q", "k")}
    assert patterns(names) == ["layers.{0..5}.q", "layers.{0..5}.k"]
    names["layers.3.k"] = 5
    assert patterns(names) == ["layers.{0..2,4..5}.q", "layers.{0..2,4..5}.k", "layers.3.q", "layers.3.k"]
    assert patterns({"a.0.w": 1, "a.1.w": 2, "norm": 3}) == ["a.0.w", "a.1.w", "norm"]
    assert patterns({f"{i}.{j}": 1 for i in range(3) for j in range(2)}) == ["{0..2}.{0..1}"]


@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "0", "1", "2", "x"]), min_size=1, max_size=4).map(".".join), st.integers(1, 2)
    )
)
@settings(max_examples=200, deadline=None)
def test_no_weight_is_lost(names):
    """Each is in one row."""
    explorer = tnp.weights({"root": torch.zeros(1), **{name: torch.zeros(size) for name, size in names.items()}})
    rows = folded(explorer.values())
    assert sorted(entry.name for row in rows for entry in row.entries) == sorted(explorer)
    for row in rows:
        assert len({(entry.shape, entry.dtype) for entry in row.entries}) == 1


def test_a_name_of_many_dots_is_no_danger():
    """Nor does it recurse."""
    assert len(folded(tnp.weights({"a." * 50_000: torch.zeros(1)}).values())) == 1
