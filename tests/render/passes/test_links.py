"""The names in the sentences of a card that a live tree makes links."""

from __future__ import annotations

import pytest
from built_passes import Builder

from tensornp.render.layout.table import Drawn
from tensornp.render.passes.links import Links


@pytest.fixture
def links() -> Links:
    built = Builder()
    with built.call("", "Net", code="net"):
        for name in ("norm", "layers.1", "layers.10", "a<b>"):
            built.leaf(name, "Linear")
    return Links(built.calls)


def test_a_parameter_that_was_bad_is_marked_for_its_call(links):
    """Also of a model that has no name."""
    assert "tensornp-to-2" in links.within("layers.1.weight held NaN", 2, "layers.1.weight").html
    assert links.within("weight held NaN", 0, "weight").html.startswith('<span class="tensornp-to-0">weight</span>')


@pytest.mark.parametrize(
    ("sentence", "call", "marked"),
    [
        ("layers.1 (Linear) gave zeros", None, (2, "layers.1")),
        ("layers.10: its units are dead", None, (3, "layers.10")),
        ("layers.1.weight held NaN", None, (2, "layers.1.weight")),
        ("a<b> gave zeros", None, (4, "a&lt;b&gt;")),
        ("the NaN was born in layers.10, after norm", 3, (3, "layers.10")),
        ("after layers.10 layers.1 has it", 2, (2, "layers.1")),
        ("Net returned a NaN", 0, (0, "Net")),
        ("the norm grows evenly", None, None),
        ("2 parameters held NaN: norm.weight, norm.bias", None, None),
        ("nothing is named here", 1, None),
        ("", None, None),
    ],
)
def test_the_name_of_a_call_is_marked_where_it_stands(links, sentence, call, marked):
    """Whole, and never another name that begins with it; the text stays as it is."""
    found = links.within(sentence, call)
    assert found == sentence
    if marked is None:
        assert not isinstance(found, Drawn)
    else:
        index, name = marked
        assert isinstance(found, Drawn)
        assert f'<span class="tensornp-to-{index}">{name}</span>' in found.html
        assert "<b>" not in found.html
