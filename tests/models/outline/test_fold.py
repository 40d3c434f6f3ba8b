"""Names that repeat are folded: what is unlike stands alone; and weights are sorted by their figures."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.models.outline.columns import FINDINGS, Asked, column_called, figures_of
from tensornp.models.outline.fold import folded
from tensornp.models.scan.findings import Finding
from tensornp.render.models.weights import weights_document
from tensornp.widget.weight_rows import Found
from tensornp.widget.weight_tree import WeightTree


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


def test_the_bytes_of_all_are_told_where_they_differ():
    """Sparse weights of one shape may store more or less."""

    def diagonal(numel):
        return torch.sparse_coo_tensor(torch.arange(numel).repeat(2, 1), torch.ones(numel), (9, 9)).coalesce()

    explorer = tnp.weights({f"{i}.w": diagonal(i + 1) for i in range(3)})
    total = sum(entry.nbytes for entry in explorer.values())
    assert f"{total} bytes in all" in tnp.card(explorer).text
    assert "3 × 40 bytes" in tnp.card(tnp.weights({f"{i}.w": diagonal(2) for i in range(3)})).text


def unlike(names: dict[str, tuple[int, ...]]) -> dict[str, str]:
    explorer = tnp.weights({name: torch.zeros(shape) for name, shape in names.items()})
    return {row.pattern: row.unlike for row in folded(explorer.values()) if row.unlike}


def test_a_part_that_is_unlike_the_others_says_how():
    """By the first difference."""
    usual = {f"h.{i}.{part}": (4,) for i in range(5) for part in ("q.weight", "k.weight")}
    assert unlike(usual) == {}
    assert unlike({**usual, "h.3.q.weight": (5,)})["h.3.q.weight"] == "q.weight is (5,), usually (4,)"
    assert unlike({**usual, "h.3.q.weight": ()})["h.3.q.weight"] == "q.weight is (), usually (4,)"
    assert unlike({**usual, "h.3.q.bias": (1,)}) == {"h.3.q.weight": "has q.bias besides"}
    assert unlike({**usual, "h.5.q.weight": (4,)}) == {"h.5.q.weight": "has no k.weight"}
    # Where none is usual, none is unusual.
    assert unlike({"net.0.weight": (3,), "net.2.weight": (4,), "net.2.bias": (4,)}) == {}


@pytest.mark.slow
@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "0", "1", "2", "x"]), min_size=1, max_size=4).map(".".join), st.integers(1, 2)
    )
)
@settings(max_examples=50, deadline=None)
def test_no_weight_is_lost(names):
    """Each is in one row."""
    explorer = tnp.weights({"root": torch.zeros(1), **{name: torch.zeros(size) for name, size in names.items()}})
    rows = folded(explorer.values())
    assert sorted(entry.name for row in rows for entry in row.entries) == sorted(explorer)
    for row in rows:
        assert len({(entry.shape, entry.dtype) for entry in row.entries}) == 1


def test_what_only_looks_like_a_number_is_not_folded():
    """Leading zeros, and more digits than any number of layers has."""
    assert patterns({"01.w": 1, "1.w": 1, "001.w": 1}) == ["01.w", "1.w", "001.w"]
    assert len(patterns({"1" * 5000 + ".w": 1, "2" * 5000 + ".w": 1})) == 2


def test_states_of_parameters_of_other_shapes_are_nothing_odd():
    """They follow the parameters; what one state lacks is said all the same."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.Conv1d(10, 16, 3))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    saved = optimizer.state_dict()
    assert {row.unlike for row in folded(tnp.weights(saved).values())} == {""}
    del saved["state"][5]["exp_avg"]
    assert {row.unlike for row in folded(tnp.weights(saved).values())} == {"", "has no exp_avg"}


def test_the_static_table_tells_of_frozen_weights():
    """Some of a line are told in words."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(50)))
    explorer = tnp.weights(model)
    assert "frozen" not in weights_document(explorer).html()
    model[7].bias.requires_grad_(False)
    assert "some frozen" in weights_document(explorer).html()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", ["norm", FINDINGS])
def test_weights_without_a_figure_come_last(column, descending):
    """Whichever way they are sorted; equal ones stay as they are, and counters stand behind by a figure."""
    tree = WeightTree([*tnp.weights({name: torch.ones(2) for name in "abcde"}).values()], {})
    ranks = {"b": 1, "c": 2, "e": 1}
    tree.found = {name: Found((Finding(rank, "", ""),), figures={"norm": rank}) for name, rank in ranks.items()}
    chosen = tree.chosen(Asked(sort=column, descending=descending))
    assert [one.name for one in chosen] == [*("cbe" if descending else "bec"), "a", "d"]
    tensors = {"g.position_ids": torch.arange(9), "g.w": torch.ones(2), "h": torch.ones(3)}
    tree = WeightTree([*tnp.weights(tensors).values()], {})
    tree.found = {name: Found((), figures={"norm": float(one.double().norm())}) for name, one in tensors.items()}
    chosen = tree.chosen(Asked(sort="norm", descending=descending))
    assert [one.name for one in chosen] == [*(["h", "g.w"] if descending else ["g.w", "h"]), "g.position_ids"]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("norm", 2.3456, "2.35"), ("norm", 8.0, "8.00"), ("norm", 979.1, "979"), ("norm", 0.0, "0"),
        ("mean", -0.5, "-0.500"), ("zeros", 0.0, "0"), ("zeros", 1e-6, "< 0.1%"), ("zeros", 0.9999, "> 99.9%"),
        ("zeros", 1.0, "100%"),
    ],
)  # fmt: skip
def test_a_figure_is_written_in_three_digits(column, value, text):
    """With its zeros; a share is none only where it is."""
    assert column_called(column).figure_text(value) == text


def test_a_figure_is_that_of_the_finite_elements():
    """And there is none where nothing is finite."""
    stats = tnp.stats(torch.tensor([3.0, -4.0, 0.0, math.nan]))
    assert figures_of(stats) == {
        "norm": pytest.approx(5), "mean": pytest.approx(-1 / 3), "std": stats.std, "max |x|": 4, "zeros": 0.25,
    }  # fmt: skip
    assert figures_of(tnp.stats(torch.full((3,), math.nan))) == {"zeros": 0}
