"""Statistics that the toggle offers: read in a thread, told as they go, ended, and forgotten when the card moves on."""

from __future__ import annotations

import math
import threading
import time
from functools import partial
from typing import Any

import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.stats import compute
from tensornp.widget.navigator import the_navigator
from tensornp.widget.scanning import Scanning
from tensornp.widget.toggle import TensorWidget, stats_of

PATIENCE_S = 60


def ask(card: TensorWidget, **content: Any) -> None:
    """Send what a page sends."""
    card._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


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


def test_what_the_card_does_not_tell_is_offered(large):
    """Not for what the card tells, where it is turned off, or where there is nothing."""
    assert tnp.TensorWidget(large).has_stats
    assert not tnp.TensorWidget(large[:10]).has_stats
    assert not TensorWidget(large, options=DisplayOptions(stats="off")).has_stats
    assert not tnp.TensorWidget(torch.zeros(3, device="meta")).has_stats
    assert not tnp.TensorWidget(torch.zeros(0, 3)).has_stats


def test_the_figures_come_from_a_thread_and_change_nothing(large):
    """The kernel answers meanwhile; the tensor is as it was."""
    card = tnp.TensorWidget(large)
    with unchanged(large):
        ask(card, type="stats")
        wait_for(lambda: card.figures)
    assert card.progress == -1
    assert card.figures["words"][0].startswith("mean ")
    assert card.figures["alarms"] == [("nan", "1 NaN")]
    assert card.figures["picture"]["src"].startswith("data:image/png;base64,")
    assert "1,500,000 elements" in card.figures["title"]


def test_one_that_is_ended_stays_and_says_that_it_is_partial(large, monkeypatch):
    """With the figures of what was read."""
    monkeypatch.setattr(compute, "TASK_BLOCKS", 1)
    begun, go_on = threading.Event(), threading.Event()
    told: list[float] = []

    def tell(_: Scanning, share: float) -> None:
        told.append(share)
        begun.set()
        go_on.wait(PATIENCE_S)

    found: list[Any] = []
    scanning = Scanning(partial(stats_of, large), tell, lambda _, stats, reason: found.append((stats, reason)))
    assert begun.wait(PATIENCE_S)
    scanning.end()
    go_on.set()
    scanning.join(PATIENCE_S)
    ((stats, reason),) = found
    assert reason == ""
    assert 0 < stats.count < large.numel()
    assert stats.scope.startswith("partial: ")
    assert 0 < told[0] < 1


def test_a_card_that_moves_on_forgets_the_scan(large, monkeypatch):
    """What comes late is shown nowhere."""
    card = tnp.TensorWidget(large)
    ask(card, type="stats")
    scanning = card._scanning
    card.rest()
    if scanning is not None:
        scanning.join(PATIENCE_S)
    assert (card.figures, card.progress) == ({}, -1)


def test_a_card_has_its_figures_at_once(large):
    """Its row takes the place of the static one; each look tells what is so by then."""
    t = large[:10].clone()
    card = tnp.TensorWidget(t)
    assert card.figures["words"][0].startswith("mean ")
    assert TensorWidget(t, anchor="tnp-1").figures == card.figures
    assert [badge["kind"] for badge in card.card["badges"]][:2] == ["shape", "dtype"]
    t[3, 4] = float("nan")
    card.mode = "copy"
    assert card.card["badges"][0]["text"] == "1 NaN"
    assert card.figures["words"][0].startswith("mean ")
    assert TensorWidget(t, options=DisplayOptions(stats="off")).figures == {}


def test_a_tensor_that_is_gone_is_no_error(large):
    """One sentence on the card."""
    card = TensorWidget(large, held=lambda: None)
    ask(card, type="stats")
    assert card.message["text"] == "the tensor of this card is gone; show it again"
    assert card.progress == -1


def test_a_nan_on_the_card_leads_to_it(large):
    """The navigator opens there; where it is open, it moves there."""
    card = tnp.TensorWidget(large)
    ask(card, type="values", open=True, goal="nan")
    assert card.shows_values
    assert the_navigator().goal[0] == "nan"
    first = the_navigator().goal[1]
    ask(card, type="values", open=True, goal="inf")
    assert the_navigator().goal == ["inf", first + 1]
    ask(card, type="values", open=True, goal="something else")
    assert the_navigator().goal[0] == ""
    card.close()
