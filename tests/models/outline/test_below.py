"""Where below a line something is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tensornp.models.outline.below import distinguishing, part_of


@pytest.mark.parametrize(
    ("name", "first", "last", "text"),
    [
        ("encoder.layer.3.query.weight", "encoder.layer.0.query.weight", "encoder.layer.5.query.weight", "layer 3"),
        ("model.layers.7.mlp.up.bias", "model.layers.0.norm.weight", "model.layers.31.mlp.up.bias", "layer 7"),
        ("embeddings.LayerNorm.bias", "embeddings.LayerNorm.bias", "embeddings.word.weight", "LayerNorm"),
        ("h.1.0.w", "h.1.0.w", "h.1.2.w", "0"),
        ("3.weight", "0.weight", "9.weight", "3"),
        ("a", "a", "a.b", "a"),
        ("a", "a", "a", "a"),
    ],
)
def test_a_part_is_where_the_outermost_names_differ(name, first, last, text):
    """With the key before a number, in the singular; a name that others go on from is a part too."""
    assert part_of(name, first, last) == text


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["encoder.layer.0.query.weight", "encoder.layer.1.query.weight"], ["layer.0", "layer.1"]),
        (
            ["h.0.experts.0.w", "h.0.experts.1.w", "h.1.experts.0.w"],
            ["h.0.experts.0", "h.0.experts.1", "h.1.experts.0"],
        ),
        (["0.weight", "9.weight"], ["0", "9"]),
        (["a"], ["a"]),
    ],
)
def test_below_a_pattern_the_part_that_differs_is_enough(names, said):
    """With the key before it; all numbers of a nested one."""
    entries = [SimpleNamespace(name=name) for name in names]
    assert [distinguishing(name, entries) for name in names] == said
