"""The rows of a comparison: layers of which some weights did not move, tied names, and shares of their own norms."""

from __future__ import annotations

import copy
import re

import pytest
import torch

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.render.models.comparison import live_rows, weights_comparison_document


def compared(a: object, b: object) -> WeightsComparison:
    found = tnp.compare(a, b)
    assert isinstance(found, WeightsComparison)
    return found


def lines_of(found: WeightsComparison) -> list[str]:
    return weights_comparison_document(found).text().splitlines()


def test_a_layer_of_which_one_weight_did_not_move_is_folded_with_the_others():
    """It is said how many moved; together with those that did not they are all."""
    before = {f"layers.{i}.{name}": torch.rand(4, 4) for i in range(8) for name in ("down.weight", "key.bias")}
    # The biases less far: the order of the rows is that of how far they moved.
    after = {name: one + (1 if name.endswith("weight") else 0.1) for name, one in before.items()}
    for i in (3, 6, 7):
        after[f"layers.{i}.key.bias"] = before[f"layers.{i}.key.bias"].clone()
    found = compared(before, after)
    rows = {row.pattern: row for row in found._folded()}
    assert list(rows) == ["layers.{0..7}.down.weight", "layers.{0..2,4..5}.key.bias"]
    assert rows["layers.{0..7}.down.weight"].unlike == ""
    assert rows["layers.{0..2,4..5}.key.bias"].unlike == "5 of 8 moved"
    [equal] = found._folded_equal()
    assert (equal.pattern, len(equal.entries), equal.unlike) == ("layers.{3,6..7}.key.bias", 3, "3 of 8 did not move")
    assert any("layers.{0..2,4..5}.key.bias × 5" in line and "5 of 8 moved" in line for line in lines_of(found))


class Tied(torch.nn.Module):
    """A head that is the embedding, and two layers that share a weight with the first."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.head = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False)
        self.head.weight = self.tokens.weight
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(5)])
        for i in (2, 3):
            self.layers[i].weight = self.layers[0].weight


@pytest.mark.parametrize("kind", ["state dict", "module", "file"])
def test_tied_weights_are_named_and_counted_once(kind, tmp_path):
    """As `%tensorwatch` counts them; and a tie splits no row."""
    model = Tied()
    before = copy.deepcopy(model)
    torch.save(model.state_dict(), tmp_path / "before.pt")
    with torch.no_grad():
        for one in model.parameters():
            one.add_(1)
    first = {"state dict": before.state_dict(), "module": before, "file": tmp_path / "before.pt"}[kind]
    found = compared(first, model)
    assert found._tied == {
        "head.weight": "tokens.weight", "layers.2.weight": "layers.0.weight", "layers.3.weight": "layers.0.weight"
    }  # fmt: skip
    lines = lines_of(found)
    assert lines[0].endswith(": 9 of 9 weights differ (3 more names tied to them)")
    assert any(line.startswith("head.weight") and line.endswith("tied to tokens.weight") for line in lines)
    [row] = [line for line in lines if "weight × 5" in line]
    assert row.startswith("layers.{0..4}.weight")
    assert "2 of 5 tied to layers.0.weight" in row
    assert live_rows(found, 100).noun == "name"


def test_every_row_has_the_share_of_its_own_norm():
    """So that an order by it is one: what has not moved has 0, and what was zero comes before all."""
    before = {"unmoved": torch.ones(2, 9), "small": torch.full((4,), 0.01), "zero": torch.zeros(5)}
    before |= {f"w{'x' * i}": torch.full((4,), 1.0 + i) for i in range(3)}
    after = {name: one + 0.002 * (name != "unmoved") for name, one in before.items()}
    found = compared(before, after)
    live = live_rows(found, 100)
    headings = re.split(r"  +", next(line for line in lines_of(found) if line.startswith("name")))
    column = headings.index("of own")
    numbers = {name: row["numbers"][column] for name, row in zip(live.names, live.rows, strict=True)}
    assert sorted(numbers, key=numbers.__getitem__) == ["unmoved", "wxx", "wx", "w", "small", "zero"]
    assert numbers["w"] == pytest.approx(0.002, rel=1e-3)
    cells = {name: row["cells"][column] for name, row in zip(live.names, live.rows, strict=True)}
    assert (cells["unmoved"], cells["w"], cells["small"], cells["zero"]) == ("0%", "0.2%", "20%", "from 0")


def test_what_is_said_of_how_many_differ_adds_up():
    """Nearly all elements in some, many in others, and the rest as its rows say."""
    torch.manual_seed(0)
    before = {f"{'w' * i}": torch.rand(10, 9 + i) for i in range(1, 7)}
    after = {name: one * (1 + torch.rand(one.shape)) for name, one in before.items()}
    for name in ("w", "ww"):
        after[name][:5] = before[name][:5]
    after["www"] = before["www"].clone()
    after["www"][0, 0] += 1
    lines = lines_of(compared(before, after))
    assert lines[1].startswith(
        "nearly all elements differ in 3 weights, many elements differ in 2 weights, 1 as its row"
    )
