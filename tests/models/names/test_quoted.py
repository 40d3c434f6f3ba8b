"""Names among other words: what is left of a long one still tells it from others."""

from __future__ import annotations

import pytest

from tensornp.models.names.quoted import cut_inside


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("encoder.0.weight", "encoder.0.weight"),
        ("encoder.layer.3.attention.weight", "encoder.la…ion.weight"),
        ("encoder.layer.3.attention.bias", "encoder.la…ntion.bias"),
        ("a" * 10**7 + "b", "a" * 10 + "…" + "a" * 9 + "b"),
        ("\n" * 1000, "\\n\\n\\n\\n\\n…\\n\\n\\n\\n\\n"),
    ],
)
def test_a_long_name_keeps_both_of_its_ends(name, shown):
    """In so many characters."""
    assert cut_inside(name, 21) == shown
    assert len(shown) <= 21
