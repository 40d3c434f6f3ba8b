"""A window on a weight is bound from the panel: in memory and of a file, of which only the window is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_part import PagePart
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.widget.weights import WeightsWidget

WEIGHTS = {"encoder.query.weight": torch.arange(600.0).reshape(20, 30), "0.weight": torch.ones(3), "0": torch.ones(2)}


@pytest.fixture(params=["memory", "file"])
def bound(request: pytest.FixtureRequest, tmp_path: Path):
    """Open a weight of a model in memory or of a file in the navigator, and return it with what is bound."""
    if request.param == "file":
        save_file(WEIGHTS, tmp_path / "model.safetensors")
    source: Any = tmp_path / "model.safetensors" if request.param == "file" else WEIGHTS
    names: dict[str, np.ndarray] = {}
    entries = tnp.weights(source, expression="model")
    model = entries if request.param == "file" else WEIGHTS
    widget = WeightsWidget(
        entries.values(), opened="model", anchor="a", binder=lambda name, make, _: names.update({name: make()})
    )

    def open_weight(name: str) -> tuple[Any, dict[str, np.ndarray], Any, dict[str, Any]]:
        ask = PagePart(widget).ask
        opened = ask("values", row=list(entries).index(name))
        return ask, names, model, opened

    yield open_weight
    widget.close()


def test_the_window_is_bound_and_the_line_says_what_does_the_same(bound):
    """By the expression of the explorer."""
    ask, names, model, _ = bound("encoder.query.weight")
    asked = {"corner": [3, 4], "size": [5, 6]}
    seen = ask("move", **asked)
    assert ask("bind window", name="part", **asked)["text"] == "assigned to part"
    expected = WEIGHTS["encoder.query.weight"][3:8, 4:10].numpy()
    np.testing.assert_array_equal(names["part"], expected)
    np.testing.assert_array_equal(eval(seen["numpy"], {"tnp": tnp, "model": model}), expected)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("encoder.query.weight", "query_weight_np"), ("0.weight", "weight_np"), ("0", "array_np")],
)
def test_a_name_is_offered_that_can_be_bound(bound, name, suggestion):
    """Made of the last parts of the weight's."""
    assert bound(name)[3]["suggestion"] == suggestion
