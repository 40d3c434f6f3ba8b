"""Statistics that the toggle offers: read in a thread, told as they go, ended, and forgotten when the card moves on."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.stats import compute
from tensornp.widget import part
from tensornp.widget.toggle import TensorWidget

PATIENCE_S = 60


def ask(card: TensorWidget, kind: str) -> dict[str, Any]:
    """Send what a page sends, and return the answer."""
    answers: list[dict[str, Any]] = []
    card.send = lambda answer, buffers=None: answers.append(answer)  # type: ignore[method-assign]
    card._receive(None, {"type": kind, "page": "p", "number": 1}, [])
    return answers[0]


def wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.fixture
def large() -> torch.Tensor:
    """Past the budget of a card, with a NaN."""
    t = torch.randn(3000, 500, generator=torch.Generator().manual_seed(0))
    t[1234, 56] = math.nan
    return t


def test_the_figures_come_from_a_thread_and_change_nothing(large):
    """The kernel answers meanwhile; the tensor is as it was."""
    card = tnp.TensorWidget(large)
    with unchanged(large):
        ask(card, "stats")
        wait_for(lambda: card.progress is None)
    assert "mean " in card.html and "1 NaN" in card.html and "data:image/png;base64," in card.html
    card.mode = "copy"
    assert "mean " in card.html


def test_one_that_is_ended_stays_and_says_that_it_is_partial(large, monkeypatch):
    """With the figures of what was read, and it may be read again."""
    monkeypatch.setattr(compute, "TASK_BLOCKS", 1)
    monkeypatch.setattr(part, "TOLD_EVERY_S", 0)
    card = tnp.TensorWidget(large)
    told: list[float] = []

    def tell(change: Any) -> None:
        told.append(change.new)
        if 0 < change.new < 1:
            ask(card, "end")

    card.observe(tell, "progress")
    ask(card, "stats")
    wait_for(lambda: card.progress == -1)
    assert 0 < told[1] < 1
    assert "partial: " in card.html


def test_a_card_has_its_figures_at_once(large):
    """Each look tells what is so by then."""
    t = large[:10].clone()
    card = tnp.TensorWidget(t)
    assert "mean " in card.html and "1 NaN" not in card.html
    t[3, 4] = float("nan")
    card.mode = "copy"
    assert "1 NaN" in card.html
    assert "mean " not in TensorWidget(t, options=DisplayOptions(stats="off")).html


def test_a_tensor_that_is_gone_is_no_error(large):
    """One sentence on the card."""
    card = TensorWidget(large, held=lambda: None)
    assert ask(card, "stats")["text"] == "the tensor of this card is gone; show it again"
    assert card.progress == -1
