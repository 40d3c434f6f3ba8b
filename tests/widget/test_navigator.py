"""The navigator without a browser: what a page may ask, what it gets, and that nothing stays behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from page_part import PagePart
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.memory.identity import TensorReference
from tensornp.core.summary.options import DisplayOptions
from tensornp.widget.part import LivePart, close_all, look_again
from tensornp.widget.toggle import TensorWidget
from tensornp.widget.values import LookedAt


class Page(PagePart):
    """The values of a tensor on a page."""

    def __init__(self, tensor: torch.Tensor | None = None, **options: Any) -> None:
        options = {"name": "t"} | options
        super().__init__(LivePart({}))
        self.values = self.widget._values
        self.values.show(LookedAt(lambda: tensor, **options))
        # What takes long is answered at once.
        self.widget._slow.clear()
        self.values._is_latest = lambda request: True

    def look_at(self, held: Any) -> None:
        self.values.show(LookedAt(held))

    def ask(self, kind: str = "move", **request: Any) -> dict[str, Any]:
        return super().ask(kind, **request)


def test_a_move_brings_the_window_and_nothing_else():
    """Texts of the visible cells, and their shades as bytes."""
    t = torch.arange(2 * 300 * 400.0).reshape(2, 300, 400)
    page = Page(t)
    with unchanged(t):
        answer = page.ask(corner=[1, 7, 9], size=[2, 3])
    part = t[1, 7:9, 9:12].flatten()
    assert answer["exact"] == [str(np.float32(x)) for x in part.tolist()]
    assert (answer["shape"], answer["axes"], answer["corner"]) == ([2, 300, 400], [1, 2], [1, 7, 9])
    (shades,) = page.buffers[-1]
    limit = part.max().item()
    np.testing.assert_array_equal(np.frombuffer(shades, np.int8), np.rint(part.double().numpy() / limit * 100))


def test_the_window_moves_to_what_is_asked_for():
    """To a cell, to an index as text, to the next NaN; a search that fails says why."""
    t = torch.zeros(3, 100, 100)
    t[2, 50, 60] = torch.nan
    page = Page(t)
    assert page.ask(show=[1, 20, 3], size=[16, 8])["corner"] == [1, 5, 0]
    answer = page.ask(seek="nan", after=None, size=[16, 8])
    assert (answer["show"], answer["corner"]) == ([2, 50, 60], [2, 42, 56])
    answer = page.ask(index="2, 40:, 58:61", size=[16, 8])
    assert (answer["corner"], answer["show"]) == ([2, 40, 58], [2, 40, 58])
    answer = page.ask(index="-1, -1, -1", axes=[2, 1], size=[2, 2])
    assert (answer["corner"], answer["show"]) == ([2, 98, 98], [2, 99, 99])
    sparse = torch.eye(3).to_sparse()
    assert "not stored one by one; pass tnp.to_numpy(t)" in Page(sparse).ask(seek="min")["text"]


@pytest.mark.parametrize(
    ("index", "says"),
    [("3, 0", "out of bounds for axis 0 of shape (3, 3)"), ("x", "is no index"), ("0, 0, 0", "name fewer")],
)
def test_an_index_that_is_none_is_an_error_in_one_sentence(index, says):
    """And the page goes on."""
    page = Page(torch.zeros(3, 3))
    answer = page.ask(index=index)
    assert answer["type"] == "error"
    assert says in answer["text"]
    assert page.ask()["type"] == "window"


NONSENSE: tuple[dict[str, Any], ...] = (
    {"corner": "x"}, {"corner": [None]}, {"corner": [1.5, 2]}, {"corner": {}}, {"axes": "ab"}, {"axes": [0, 0]},
    {"axes": [-1, 0]}, {"axes": [True, 1]}, {"size": []} | {"corner": 3}, {"size": [1]}, {"size": ["a", "b"]},
    {"show": 7}, {"show": [[]]}, {"index": 7}, {"index": []},
    {"index": "\0" * 9}, {"seek": "everything"}, {"seek": []}, {"seek": "nan", "after": "x"},
)  # fmt: skip


@pytest.mark.parametrize("request_", NONSENSE, ids=str)
def test_a_request_that_makes_no_sense_gets_one_sentence(request_):
    """And the next one is answered."""
    page = Page(torch.zeros(3, 3))
    answer = page.ask(**request_)
    assert answer["type"] == "error"
    assert 0 < len(answer["text"]) < 200
    assert "\n" not in answer["text"]
    assert page.ask()["type"] == "window"


@pytest.mark.parametrize(
    "content", [None, 3, "move", [], {}, {"type": []}, {"type": "move"}, {"type": "move", "page": 3, "number": 1},
                {"type": "move", "page": "p", "number": "1"}, {"type": "move", "page": "p", "number": True},
                {"type": "docks", "page": []}]
)  # fmt: skip
def test_messages_that_are_no_request_do_no_harm(content):
    """Nothing is sent back, since nobody could tell what to."""
    page = Page(torch.zeros(3, 3))
    page.send(content)
    assert page.answers == []
    page.widget.set_state({"anchor": "evil"})
    assert page.widget.anchor == ""


def test_numbers_have_the_same_decimals_and_the_line_has_all_digits():
    """A tiny one keeps its exponent, and does not change the others."""
    page = Page(torch.tensor([[1 / 3, 100.5], [-2.5, 2e-7]]))
    answer = page.ask()
    assert answer["texts"] == ["0.3", "100.5", "-2.5", "2.0e-07"]
    assert answer["exact"] == ["0.33333334", "100.5", "-2.5", "2e-07"]


def test_the_plane_around_the_window_is_drawn():
    """Unasked where it costs little, else when it is asked for; none of what is seen whole."""
    t = torch.zeros(3, 200, 400)
    page = Page(t)
    assert Page(torch.zeros(16, 16)).ask()["overview"] == ""
    assert page.ask()["overview"] == "free"
    dear = Page(t, options=DisplayOptions(max_read_nbytes=1000))
    assert dear.ask()["overview"] == "reads 312.5 KiB"
    for asked in (page, dear):
        with unchanged(t):
            drawn = asked.ask("overview", axes=[1, 2], corner=[2, 0, 0])
        assert (drawn["type"], drawn["plane"]) == ("overview", [200, 400])
        assert drawn["src"].startswith("data:image/png;base64,")
    assert page.ask("overview", axes=[2, 0], corner=[0, 7, 0])["plane"] == [400, 3]
    assert page.ask("overview", axes=[9, 9, 9])["type"] == "error"


BOUND = {
    "strided": (torch.arange(600.0).reshape(20, 30), {}, "w[2:5, 3:7]"),
    "transposed": (torch.arange(600.0).reshape(20, 30), {"axes": [1, 0]}, "w[2:6, 3:6].T"),
    "deep": (torch.arange(600.0).reshape(4, 5, 30), {"axes": [2, 0], "corner": [0, 1, 9]}, "w[:, 1, 9:12].T"),
    "sparse": (torch.eye(30).to_sparse(), {}, "w.to_dense()[2:5, 3:7]"),
    "conjugated": (torch.arange(60).reshape(6, 10).to(torch.complex64).mul(1j).conj(), {}, "w[2:5, 3:7]"),
    "bfloat16": (torch.arange(60).reshape(6, 10).bfloat16(), {}, "w[2:5, 3:7]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_the_array_of_a_window_is_what_it_shows(name):
    """Of any kind, along any axes, and a copy."""
    t, asked, line = BOUND[name]
    bound: dict[str, np.ndarray] = {}
    page = Page(t, name="w", binder=lambda name, make, _: bound.update({name: make()}))
    asked = {"corner": [2, 3], "size": [3, 4], **asked}
    assert page.ask("bind window", name="x", **asked)["text"] == "assigned to x"
    expected = tnp.to_numpy(eval(line, {"w": t}))
    np.testing.assert_array_equal(bound["x"], expected)
    assert (bound["x"].dtype, bound["x"].shape) == (expected.dtype, expected.shape)
    assert bound["x"].flags.writeable and bound["x"].base is not expected.base


def test_what_cannot_be_bound_says_why():
    """No notebook, no name, a tensor that is gone."""
    assert "there is no notebook" in Page(torch.zeros(3)).ask("bind window", name="x")["text"]
    page = Page(torch.zeros(3), binder=lambda *_: None)
    assert page.ask("bind window", name=3)["type"] == "error"
    page = Page(None, binder=lambda *_: None)
    assert "is gone" in page.ask("bind window", name="x")["text"]


def test_a_tensor_that_is_gone_says_so_in_place():
    """Held by its reference only: `del` frees it."""
    t = torch.zeros(5, 5)
    reference = TensorReference(t)
    page = Page()
    page.look_at(reference.find)
    assert page.ask()["type"] == "window"
    gone = weakref.ref(t)
    del t
    gc.collect()
    assert gone() is None
    assert page.ask() == {
        "type": "error", "text": "the tensor of this card is gone; show it again", "canOverwrite": False,
        "page": "p", "number": 1,
    }  # fmt: skip


def test_a_toggle_opens_its_values_at_what_is_sought():
    """The answer says how they are called, and where to begin; what is no goal is refused."""
    t = torch.zeros(2)
    card = TensorWidget(t, binder=lambda *_: None, suggestion="w_np")
    answer = PagePart(card).ask("values", goal="nan")
    assert (answer["name"], answer["suggestion"], answer["goal"]) == ("the tensor", "w_np", "nan")
    assert PagePart(tnp.TensorWidget(t)).ask("values", goal="")["suggestion"] == ""
    for nonsense in ("something else", 3, ["nan"], {}):
        assert PagePart(card).ask("values", goal=nonsense)["type"] == "error"


def test_open_values_are_read_again_when_a_cell_has_ended():
    """Those that nobody has opened are not."""
    close_all()
    heard: list[Any] = []
    card, other = tnp.TensorWidget(torch.zeros(2)), tnp.TensorWidget(torch.zeros(2))
    PagePart(card).ask("values", goal="")
    for one in (card, other):
        one.comm = one.comm or object()
        one.send = lambda content, buffers=None, one=one: heard.append((one, content))
    look_again()
    assert heard == [(card, {"type": "again"})]
