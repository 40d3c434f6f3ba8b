"""A comparison on a page, from the kernel's side: both sides of a weight in one window, and the search of its rows."""

from __future__ import annotations

import gc
import json
import time
import weakref
from typing import Any

import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.live.find import released_from
from tensornp.render.models.comparison import live_rows
from tensornp.widget.comparison import ComparisonTable, pair_of


class Shown:
    """A widget of the comparison of two things that have names, and the page's part in it."""

    def __init__(self, namespace: dict[str, Any], first: str, second: str) -> None:
        sides = [tnp.weights(namespace.get(one, one), expression=one) for one in (first, second)]
        found = tnp.compare(*sides)
        assert isinstance(found, WeightsComparison)
        self.live = live_rows(found, 2000)
        rows = [{row.name: row for row in released_from(side, namespace, "")[0]} for side in sides]
        pairs = [pair_of(rows[0][name], rows[1][found._pairs[name]], found[name]) for name in self.live.names]
        self.widget = ComparisonTable(pairs, self.live, found._sources)
        self.widget.show("a", self.live.rows, 0)
        self.answers: list[dict[str, Any]] = []
        self.widget.send = lambda content, buffers=None: self.answers.append(
            json.loads(json.dumps(content, allow_nan=False))
        )

    def ask(self, kind: str, **request: Any) -> dict[str, Any]:
        """Return the answer to a request, which has its number."""
        number = len(self.answers)
        self.widget._receive(None, {"type": kind, "page": "p", "number": number, **request}, [])
        end = time.monotonic() + 60
        while len(self.answers) == number:
            assert time.monotonic() < end, "no answer"
            time.sleep(0.01)
        assert (self.answers[-1]["page"], self.answers[-1]["number"]) == ("p", number)
        return self.answers[-1]


def models() -> dict[str, Any]:
    torch.manual_seed(0)
    before = {f"layers.{i}.weight": torch.randn(40, 30) for i in range(3)} | {"head": torch.randn(4, 6)}
    after = {name: one + 0.01 for name, one in before.items()}
    after["head"][2, 5] += 3
    after["layers.1.weight"][39, 29] -= 5
    return {"before": before, "after": after}


@pytest.mark.parametrize("odd", [None, 3])
def test_repeated_layers_are_opened_in_their_order_but_for_an_odd_one(odd):
    """Though one has moved a little more than the first."""
    before = {f"layers.{i}.weight": torch.ones(4, 4) for i in range(5)}
    after = {name: one + 0.1 + 0.001 * i + 9 * (i == odd) for i, (name, one) in enumerate(before.items())}
    shown = Shown({"before": before, "after": after}, "before", "after")
    [printed] = shown.live.printed
    order = [0, 1, 2, 3, 4] if odd is None else [3, 0, 1, 2, 4]
    assert [shown.live.names[i] for i in printed] == [f"layers.{i}.weight" for i in order]


def test_a_row_opens_both_sides_where_they_differ_most():
    """The window has the largest difference in it, and its texts are the numbers of both."""
    names = models()
    shown = Shown(names, "before", "after")
    assert shown.live.names[0] == "layers.1.weight"
    assert [shown.live.names[first] for first, *_ in shown.live.printed] == ["layers.1.weight", "head"]
    with unchanged(*names["before"].values(), *names["after"].values()):
        answer = shown.ask("largest", row=shown.live.names.index("layers.1.weight"), size=[8, 3])
    assert answer["show"] == [39, 29]
    assert answer["corner"] == [32, 27]
    first, second, difference = (
        [float(text.replace("−", "-")) for text in side["texts"]] for side in answer["windows"]
    )
    assert first == pytest.approx(names["before"]["layers.1.weight"][32:, 27:].flatten().tolist(), rel=1e-3)
    assert second == pytest.approx(names["after"]["layers.1.weight"][32:, 27:].flatten().tolist(), rel=1e-3)
    assert difference[-1] == pytest.approx(-4.99)
    assert difference[:-1] == pytest.approx([0.01] * 23, rel=1e-3)


def test_one_walks_by_index_step_and_change():
    """A step moves as little as it needs, and the next change is past the place where one is."""
    names = models()
    names["after"]["head"] = names["before"]["head"].clone()
    names["after"]["head"][1, 1], names["after"]["head"][3, 4] = 9, 9
    shown = Shown(names, "before", "after")
    row = shown.live.names.index("head")
    asked = {"row": row, "size": [2, 2]}
    assert shown.ask("window", **asked, index="3, 5")["corner"] == [2, 4]
    assert shown.ask("window", **asked, corner=[0, 0], show=[2, 1])["corner"] == [1, 0]
    found = shown.ask("next", **asked, after=None)["show"]
    assert found == [1, 1]
    assert shown.ask("next", **asked, after=found)["show"] == [3, 4]
    assert "names 3 axes" in shown.ask("window", **asked, index="1, 2, 3")["text"]


def test_a_search_knows_the_grammar_of_all_searches():
    """Words that all fit, globs, expressions; and where nothing fits, the closest."""
    shown = Shown(models(), "before", "after")
    every = shown.live.names
    assert [every[i] for i in shown.ask("search", text="weight 1")["found"]] == ["layers.1.weight"]
    assert len(shown.ask("search", text="layers.*.weight")["found"]) == 3
    assert [every[i] for i in shown.ask("search", text="/^h.*d$/")["found"]] == ["head"]
    assert "closest" in shown.ask("search", text="laiers")["text"]
    assert shown.ask("search", text="/(/")["type"] == "error"


def test_it_keeps_no_weight_alive():
    """What is gone says so, and another one is not taken for it."""
    names = models()
    shown = Shown(names, "before", "after")
    lives = weakref.ref(names["before"]["head"].untyped_storage())
    asked = {"row": shown.live.names.index("head"), "size": [2, 2]}
    del names["before"]
    gc.collect()
    assert lives() is None
    assert "before['head']" in shown.ask("window", **asked)["text"]
    names["before"] = {"head": torch.zeros(3)}
    assert "by now" in shown.ask("window", **asked)["text"]


def test_what_makes_no_sense_is_answered_in_a_sentence():
    """The browser may send anything."""
    shown = Shown(models(), "before", "after")
    for request in (
        {"row": 99},
        {"row": "x"},
        {"row": 0, "size": [1]},
        {"row": 0, "show": "x"},
        {"row": 0, "corner": 3},
    ):
        assert shown.ask("window", **request)["type"] == "error"
    assert shown.ask("search", text=3)["type"] == "error"
    shown.widget._receive(None, {"type": "window", "page": 3, "number": 1}, [])
    shown.widget._receive(None, "window", [])


def test_weights_of_two_shapes_say_so():
    """There is no difference to be seen."""
    shown = Shown({"a": {"w": torch.zeros(2)}, "b": {"w": torch.zeros(3)}}, "a", "b")
    assert "shapes differ" in shown.ask("window", row=0, size=[2, 2])["text"]


def test_a_map_tells_where_in_its_plane_a_weight_has_changed():
    """By |Δ|, of what is not seen whole; NaN on one side is marked."""
    names = models()
    names["after"]["head"][1, 3] = float("nan")
    shown = Shown(names, "before", "after")
    asked = {"row": shown.live.names.index("layers.1.weight"), "size": [8, 6]}
    assert shown.ask("window", **asked)["overview"] == "free"
    drawn = shown.ask("overview", **asked)
    assert drawn["src"].startswith("data:image/png")
    assert drawn["plane"] == [40, 30]
    assert drawn["alt"].startswith("heat map of 40 × 30 elements, |Δ|: ")
    assert [text for text, _ in drawn["words"]] == ["dark blue 0", "yellow 4.99"]
    row = shown.live.names.index("head")
    assert shown.ask("window", row=row, size=[8, 6])["overview"] == ""
    assert "violet NaN on one side" in [text for text, _ in shown.ask("overview", row=row, size=[8, 6])["words"]]
