"""Where below a closed line something stands out."""

from __future__ import annotations

import pytest

from tensornp.models.outline.below import part_of


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
