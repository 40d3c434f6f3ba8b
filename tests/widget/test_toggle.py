"""The live card as a plain object: modes, arrays, names, and what an odd browser may send."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
import traitlets
from page_part import PagePart
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.memory.identity import TensorReference
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
