"""A model shows as people know it: with its activations, the settings of its modules, and what is trained."""

from __future__ import annotations

from torch import nn
from tree_rows import rows_of

import tensornp as tnp
from tensornp.widget.weights import WeightsWidget


class Block(nn.Module):
    """A layer whose modules are registered in another order than they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.25)
        self.conv = nn.Conv2d(3, 5, 3, padding=1)
        self.act = nn.GELU()
        self.none = nn.ModuleList()


def rows(model: nn.Module) -> list[str]:
    """Return the rows of the card without shapes and bytes."""
    lines = str(tnp.card(model)).split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("name")) + 1
    return [" ".join(line.partition("  (")[0].split()) for line in lines[first:]]


def test_modules_without_weights_have_a_row_in_the_order_of_registration():
    """With the settings that differ from the defaults of their class, next to the first weight of others."""
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2, 3, bias=False), nn.LayerNorm(3))
    assert rows(model) == [
        "0.weight Linear 4 → 2", "0.bias", "1 ReLU", "2 Dropout p=0.1", "3.weight Linear 2 → 3, no bias",
        "4.weight LayerNorm 3", "4.bias",
    ]  # fmt: skip


def test_those_of_repeated_layers_are_folded():
    """An empty list does nothing, and has no row."""
    model = nn.Sequential(*[Block() for _ in range(3)])
    assert rows(model) == [
        "{0..2}.drop Dropout p=0.25", "{0..2}.conv.weight Conv2d 3 → 5, kernel_size=3, stride=1, padding=1",
        "{0..2}.conv.bias", "{0..2}.act GELU",
    ]  # fmt: skip


def test_a_layer_with_another_activation_is_not_folded_with_the_others():
    """It has rows of its own."""
    model = nn.Sequential(*[Block() for _ in range(4)])
    model[2].act = nn.ReLU()
    found = rows(model)
    assert "{0..1,3}.act GELU" in found
    assert "2.act ReLU" in found


def test_parts_of_a_model_have_no_rows_of_other_modules():
    """`find` and prefixes list weights."""
    w = tnp.weights(nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)))
    assert "ReLU" in str(tnp.card(w))
    assert "ReLU" not in str(tnp.card(w.find("0.*")))
    assert "ReLU" not in str(tnp.card(w["2"]))


def test_settings_are_asked_of_torch_alone():
    """A class of the user's is named, and its `extra_repr` is not called."""

    class Own(nn.Module):
        def extra_repr(self) -> str:
            raise AssertionError("called")

    w = tnp.weights(nn.Sequential(Own(), nn.Linear(2, 2)))
    assert w.classes["0"] == "Own"


def test_the_live_tree_has_the_same_rows():
    """They are quiet, open nothing, and are found by name or class; a scan of what is listed leaves them out."""
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 3))
    explorer = tnp.weights(model)
    widget = WeightsWidget(explorer.values(), opened="w", classes=explorer.classes)
    answer = widget._rows({})
    shown = rows_of(answer["html"], answer["head"])
    assert [(one["name"], one["class"], one["quiet"], one["number"] >= 0) for one in shown] == [
        ("0", "Linear 4 → 2", False, False), ("weight", "", False, True), ("bias", "", False, True),
        ("1", "ReLU", True, False),
        ("2", "Linear 2 → 3", False, False), ("weight", "", False, True), ("bias", "", False, True),
    ]  # fmt: skip
    assert shown[3]["open"] is None
    for search, names in {"relu": ["1"], "1": ["1"], "bias": ["0.bias", "2.bias"]}.items():
        found = widget._rows({"search": search})
        assert [(one["name"], one["quiet"]) for one in rows_of(found["html"], found["head"])] == [
            (name, name == "1") for name in names
        ]
