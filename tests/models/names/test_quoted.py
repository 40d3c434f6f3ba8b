"""Names among other words: what is left of a long one still tells it from others."""

from __future__ import annotations

import pytest

from tensornp.models.names.quoted import closest, cut_inside


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


@pytest.mark.slow
@pytest.mark.parametrize("number", [10, 1500])
@pytest.mark.parametrize("wrong", ["layer.{}.v", "lyer.{}.w", "layer{}.w", "layer.{}"])
def test_the_closest_of_very_many_is_told(number, wrong):
    """Those that begin and end alike are compared by all of their characters."""
    names = [f"layer.{i}.w" for i in range(number)]
    last = number - 1
    assert closest(wrong.format(last), names) == f"; the closest is 'layer.{last}.w'"
    assert closest("something else", names) == ""
