"""The live card as a plain object: modes, arrays, names, statistics from a thread, and what an odd browser may send."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
import traitlets
from display import array_in
from page_part import PagePart
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.memory.identity import TensorReference
from tensornp.core.summary.options import DisplayOptions
from tensornp.widget.toggle import TensorWidget


def test_each_mode_gives_its_array():
    """view is read-only and live, share writes back, copy sees nothing."""
    t = torch.zeros(2)
    card = tnp.TensorWidget(t)
    view = card.array
    card.mode = "share"
    card.array[0] = 5
    card.mode = "copy"
    copy = card.array
    t[1] = 6
    assert (view.tolist(), view.flags.writeable) == ([5, 6], False)
    assert copy.tolist() == [5, 0]


def test_toggling_reads_no_values():
    """Badges and receipt follow from metadata; the storage stays resizable and no mode sees a call."""
    t = torch.nn.Parameter(torch.zeros(2))
    card = tnp.TensorWidget(t)
    with unchanged(t):
        for mode in ("share", "copy", "view"):
            card.mode = mode
    assert "shared" in card.html


def test_what_is_impossible_stays_on_copy_and_says_why():
    """bfloat16 has no live view of its values; sharing its bits is offered."""
    card = tnp.TensorWidget(torch.ones(2).bfloat16())
    assert card.mode == "copy"
    enabled = {choice["name"]: choice["enabled"] for choice in card.choices}
    assert enabled == {"view": False, "share": True, "copy": True}
    with pytest.raises(traitlets.TraitError, match="NumPy has no bfloat16"):
        card.mode = "view"
    assert card.mode == "copy"
    card.mode = "share"
    assert str(card.array.dtype) == "bfloat16"


def test_a_mode_that_means_nothing_is_refused():
    """In Python as an exception; from the browser as a message, and the mode stays."""
    card = tnp.TensorWidget(torch.ones(2))
    with pytest.raises(traitlets.TraitError, match="choose view, share or copy"):
        card.mode = "nonsense"
    for sent in ("nonsense", 5, None, {"a": 1}):
        assert PagePart(card).ask("choose", mode=sent)["type"] == "error"
        assert card.mode == "view"


def test_a_page_sets_no_trait():
    """What is synced to the page is not taken back from it; it asks, and few traits travel."""
    card = tnp.TensorWidget(torch.ones(2))
    html = card.html
    card.set_state({"mode": "copy", "html": "evil", "can_bind": True})
    assert (card.mode, card.html, card.can_bind) == ("view", html, False)
    PagePart(card).ask("choose", mode="copy")
    assert card.mode == "copy" and ">copy " in card.html
    own = [name for name in card.keys if not name.startswith("_") and name not in ("layout", "tabbable", "tooltip")]
    assert len(own) <= 7


def test_a_pinned_card_keeps_its_tensor_until_it_is_closed():
    """`tnp.TensorWidget(x + 1)` would otherwise be gone at once."""
    t = torch.ones(2)
    gone = weakref.ref(t)
    card = tnp.TensorWidget(t)
    del t
    gc.collect()
    assert card.array.tolist() == [1, 1]
    card.close()
    gc.collect()
    assert gone() is None
    with pytest.raises(tnp.NoDataError, match="gone"):
        _ = card.array


def test_the_automatic_card_does_not_keep_its_tensor_alive():
    """It holds a weak reference, and says so when the tensor is gone."""
    t = torch.ones(2)
    card = TensorWidget(t, held=TensorReference(t).find)
    del t
    gc.collect()
    with pytest.raises(tnp.NoDataError, match="show it again"):
        _ = card.array
    assert "gone" in PagePart(card).ask("choose", mode="copy")["text"]


def test_without_a_notebook_there_is_nothing_to_bind_in():
    """One sentence, with the cure."""
    with pytest.raises(tnp.BadRequestError, match=r"take \.array instead"):
        tnp.TensorWidget(torch.ones(2)).bind("a")


def test_the_bundle_is_complete_where_no_widget_can_be_shown():
    """Static HTML and text stand beside the widget."""
    data, _ = tnp.TensorWidget(torch.ones(2))._repr_mimebundle_()
    assert "array([1., 1.], dtype=float32)" in data["text/html"]
    assert "array([1., 1.], dtype=float32)" in data["text/plain"]


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


def test_all_digits_are_those_of_numpy_and_a_second_press_takes_them_back():
    """In each mode; whole numbers have none, and neither has who chose NumPy's."""
    t = torch.rand(2, 20, generator=torch.Generator().manual_seed(0))
    page = PagePart(tnp.TensorWidget(t))
    four = page.widget.html
    assert page.widget.all_digits is False
    page.ask("digits")
    for mode in ("copy", "view"):
        page.ask("choose", mode=mode)
        assert array_in(page.widget.html) == repr(t.numpy())
    assert page.widget.all_digits is True
    page.ask("digits")
    assert page.widget.html == four
    assert tnp.TensorWidget(torch.arange(3)).all_digits is None
    assert TensorWidget(t, options=DisplayOptions.of(precision="numpy")).all_digits is None
