"""Frozen weights by the modules of which they are all."""

from __future__ import annotations

import pytest

from tensornp.models.names.whole import by_whole_modules

LAYER = ("attn.q.weight", "attn.q.bias", "norm.weight")
EVERY = [*(f"layers.{i}.{name}" for i in range(6) for name in LAYER), "head.weight", "head.bias", "x{}.0"]


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (lambda name: name.startswith("layers"), ["layers"]),
        (lambda name: name.split(".")[1] in "045", ["layers.{0,4..5}", "x{}"]),
        (lambda name: name.startswith("layers.2") or "4.attn" in name, ["layers.2", "layers.4.attn"]),
        (lambda name: "attn" in name, ["layers.{0..5}.attn"]),
        (lambda name: name == "head.bias", ["head.bias"]),
        (lambda name: name == "x{}.0", ["x{}"]),
        (lambda name: False, []),
    ],
)
def test_what_is_all_of_a_module_is_said_by_its_name(chosen, told):
    """The outermost one, numbers together."""
    assert by_whole_modules([name for name in EVERY if chosen(name)], EVERY) == told
