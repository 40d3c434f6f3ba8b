"""A comparison on a page, from the kernel's side: a row opens the navigator on both sides and their difference."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from page_part import PagePart
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.render.models.comparison import live_rows
from tensornp.widget.comparison import ComparisonTable


class Shown(PagePart):
    """The comparison of two things that have names, on a page."""

    def __init__(self, namespace: dict[str, Any], first: str, second: str) -> None:
        sides = [tnp.weights(namespace.get(one, one), expression=one) for one in (first, second)]
        found = tnp.compare(*sides)
        assert isinstance(found, WeightsComparison)
        self.live = live_rows(found, 2000)
        super().__init__(ComparisonTable(found, namespace, anchor="a"))

    def opened(self, row: int) -> tuple[dict[str, Any], Callable[..., dict[str, Any]]]:
        """Return the answer to a row that is opened, and what asks its window."""
        answer = self.ask("values", row=row)

        def window(kind: str = "move", *, goal: bool = False, **request: Any) -> dict[str, Any]:
            aim = answer["goal"] if goal else None
            wanted = {"seek": aim} if isinstance(aim, str) else {"show": aim, "isInMiddle": True} if aim else {}
            return self.ask(kind, **wanted, **request)

        return answer, window


def models() -> dict[str, Any]:
    torch.manual_seed(0)
    before = {f"layers.{i}.weight": torch.randn(40, 30) for i in range(3)} | {"head": torch.randn(4, 6)}
    after = {name: one + 0.01 for name, one in before.items()}
    after["head"][2, 5] += 3
    after["layers.1.weight"][39, 29] -= 5
    return {"before": before, "after": after}


def test_a_row_opens_the_navigator_where_both_sides_differ_most():
    """On the difference; the other faces have the numbers of both sides, and each element has its values on all."""
    names = models()
    shown = Shown(names, "before", "after")
    assert [shown.live.names[first] for first in shown.live.printed] == ["layers.1.weight", "head"]
    row = shown.live.names.index("layers.1.weight")
    with unchanged(*names["before"].values(), *names["after"].values()):
        _, window = shown.opened(row)
        assert window(goal=True)["show"] == [39, 29]
        asked = {"corner": [32, 27], "size": [8, 3]}
        faces = [window(face=face, **asked) for face in range(3)]
    assert [face["faces"] for face in faces] == [["before", "after", "Δ"]] * 3
    numbers = [[float(text) for text in face["texts"]] for face in faces]
    assert numbers[0] == pytest.approx(names["before"]["layers.1.weight"][32:, 27:].flatten().tolist(), abs=1e-3)
    assert numbers[1] == pytest.approx(names["after"]["layers.1.weight"][32:, 27:].flatten().tolist(), abs=1e-3)
    assert numbers[2][-1] == pytest.approx(-4.99)
    assert numbers[2][:-1] == pytest.approx([0.01] * 23, rel=1e-2)
    assert all(face["exact"] == faces[0]["exact"] for face in faces)
    assert re.fullmatch(r"before \S+  after \S+  Δ -4.99\d*", faces[0]["exact"][-1])


def test_a_map_shows_where_in_its_plane_a_weight_has_changed():
    """The plane of the difference, if the window does not show all of it."""
    shown = Shown(models(), "before", "after")
    _, window = shown.opened(shown.live.names.index("layers.1.weight"))
    assert window(size=[8, 6])["overview"] == "free"
    drawn = window("overview", axes=[0, 1])
    assert drawn["src"].startswith("data:image/png")
    assert drawn["plane"] == [40, 30]


def test_a_nan_on_one_side_is_where_a_row_opens():
    """It exceeds any difference."""
    names = models()
    names["after"]["head"][1, 3] = float("nan")
    shown = Shown(names, "before", "after")
    row = shown.live.names.index("head")
    _, window = shown.opened(row)
    assert window(goal=True)["show"] == [1, 3]


def test_a_window_on_weights_that_were_written_to_says_so():
    """The table has the values of the comparison, and the window those of now."""
    names = models()
    shown = Shown(names, "before", "after")
    row, other = shown.live.names.index("head"), shown.live.names.index("layers.1.weight")
    assert not shown.opened(row)[0]["text"]
    names["after"]["head"].add_(1)
    assert "since the comparison" in shown.opened(row)[0]["text"]
    assert not shown.opened(other)[0]["text"]


def test_it_keeps_no_weight_alive():
    """What is gone says so, and another one is not taken for it."""
    names = models()
    shown = Shown(names, "before", "after")
    lives = weakref.ref(names["before"]["head"].untyped_storage())
    row = shown.live.names.index("head")
    _, window = shown.opened(row)
    del names["before"]
    gc.collect()
    assert lives() is None
    assert "before['head']" in window()["text"]
    assert "before['head']" in shown.ask("values", row=row)["text"]
    names["before"] = {"head": torch.zeros(3)}
    assert "by now" in shown.ask("values", row=row)["text"]


def test_what_makes_no_sense_is_answered_in_a_sentence():
    """The browser may send anything."""
    shown = Shown(models(), "before", "after")
    for request in ({"row": 99}, {"row": "x"}, {}):
        assert shown.ask("values", **request)["type"] == "error"
    _, window = shown.opened(0)
    assert window(face="x")["type"] == "error"
    assert window(face=99)["face"] == 2
    for text in (3, "/(/"):
        assert shown.ask("search", text=text)["type"] == "error"
    shown.send({"type": "open", "page": 3, "number": 1})
    shown.send("open")


def test_weights_of_two_shapes_say_so():
    """There is no difference to be seen."""
    shown = Shown({"a": {"w": torch.zeros(2)}, "b": {"w": torch.zeros(3)}}, "a", "b")
    assert "shapes differ" in shown.ask("values", row=0)["text"]
