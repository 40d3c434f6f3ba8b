"""Statistics that the toggle offers: read in a thread, and forgotten when the card moves on."""

from __future__ import annotations

import math

import pytest
import torch
from page_part import PagePart
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.widget.toggle import TensorWidget


@pytest.fixture
def large() -> torch.Tensor:
    """Past the budget of a card, with a NaN."""
    t = torch.randn(3000, 500, generator=torch.Generator().manual_seed(0))
    t[1234, 56] = math.nan
    return t


def test_the_figures_come_from_a_thread_and_change_nothing(large):
    """They are offered once, and stay in the other modes."""
    card = tnp.TensorWidget(large)
    assert card.has_more
    with unchanged(large):
        assert PagePart(card).ask("stats")["text"] == "the statistics are in the card"
    assert "mean " in card.html and "1 NaN" in card.html and "data:image/png;base64," in card.html
    card.mode = "copy"
    assert "mean " in card.html and not card.has_more


def test_a_card_has_its_figures_at_once(large):
    """Each look tells what is so by then."""
    t = large[:10].clone()
    card = tnp.TensorWidget(t)
    assert "mean " in card.html and "1 NaN" not in card.html and not card.has_more
    t[3, 4] = float("nan")
    card.mode = "copy"
    assert "1 NaN" in card.html
    assert "mean " not in TensorWidget(t, options=DisplayOptions(stats="off")).html


def test_a_tensor_that_is_gone_is_no_error(large):
    """One sentence on the card."""
    card = TensorWidget(large, held=lambda: None)
    assert PagePart(card).ask("stats")["text"] == "the tensor of this card is gone; show it again"
