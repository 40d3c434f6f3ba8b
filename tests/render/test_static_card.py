"""`tnp.card`: the static card as an object."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from unchanged import unchanged

import tensornp as tnp


@pytest.mark.parametrize("obj", [torch.zeros(5, 5), {"a": torch.zeros(2), "n": 3}, torch.nn.Linear(2, 2)], ids=type)
def test_a_card_shows_wherever_something_asks_for_html_or_text(obj):
    """In IPython without the extension, in marimo, in print."""
    card = tnp.card(obj)
    assert isinstance(card, tnp.Card)
    bundle, _ = DisplayFormatter().format(card)
    assert bundle["text/html"] == card._mime_()[1] == card.html
    assert card._mime_()[0] == "text/html"
    assert bundle["text/plain"] == str(card) == repr(card) == card.text
    assert card.html.startswith('<div class="tensornp')
    assert "<script" not in card.html


def test_it_is_what_it_was_and_keeps_nothing_alive():
    """Making it changes nothing either."""
    t = torch.zeros(5)
    gone = weakref.ref(t)
    with unchanged(t):
        card = tnp.card(t)
    t += 1
    assert "0., 0., 0., 0., 0." in card.text
    del t
    gc.collect()
    assert gone() is None


def test_options_are_those_of_the_display():
    """By the same names, with the same bounds."""
    t = torch.full((40, 3), 1 / 3)
    assert "max-height:none" in tnp.card(t, max_height=0).html
    assert "[0.33, 0.33, 0.33]" in tnp.card(t, precision=2).text
    assert tnp.card(t, style="line").text.count("\n") == 0
    assert tnp.card(t, precision=None).text == tnp.card(t).text
    for options, said in [
        ({"colour": 1}, "no display option 'colour'; choose from mode, "),
        ({"style": "big"}, "style is one of auto, card, line, not 'big'"),
        ({"max_rows": 3}, "max_rows is a number from 4 to 500, not 3"),
        ({"max_height": True}, "max_height is a number from 0 on, not True"),
        ({"suppress": 1}, "suppress is True or False, not 1"),
    ]:
        with pytest.raises(tnp.BadRequestError, match=said):
            tnp.card(t, **options)
    with pytest.raises(tnp.NotATensorError, match="not 'int'"):
        tnp.card(3)
