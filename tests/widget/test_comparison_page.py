"""A comparison on a page, from the kernel's side: both sides of a weight in one window, and the search of its rows."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.live.find import released_from
from tensornp.render.models.comparison import live_rows
from tensornp.widget import comparison
from tensornp.widget.comparison import ComparisonTable, pair_of


class Shown:
    """A widget of the comparison of two things that have names, and the page's part in it."""

    def __init__(self, namespace: dict[str, Any], first: str, second: str) -> None:
        sides = [tnp.weights(namespace.get(one, one), expression=one) for one in (first, second)]
        found = tnp.compare(*sides)
        assert isinstance(found, WeightsComparison)
        self.live = live_rows(found, 2000)
        rows = [{row.name: row for row in released_from(side, namespace, "")[0]} for side in sides]
        pairs = [pair_of(rows[0][name], rows[1][found.pairs[name]], found[name]) for name in self.live.names]
        self.widget = ComparisonTable(pairs, self.live, found.sources)
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


def test_a_pair_that_was_written_since_is_said_to_be_another_one():
    """Its row has the figures of before; the window shows what there is now."""
    names = models()
    shown = Shown(names, "before", "after")
    assert "since" not in shown.ask("largest", row=0, size=[2, 2])["text"]
    for one in names["after"].values():
        one.mul_(2)
    answer = shown.ask("largest", row=0, size=[2, 2])
    assert answer["text"].endswith(" · the figures in its row are of the comparison, made before the last change")


def test_after_a_change_the_largest_difference_is_that_of_what_is_shown():
    """And not the one that the comparison has found; nor is that told which is of before."""
    names = models()
    shown = Shown(names, "before", "after")
    row = shown.live.names.index("layers.1.weight")
    assert shown.ask("largest", row=row, size=[2, 2])["show"] == [39, 29]
    with torch.no_grad():
        names["after"]["layers.1.weight"][7, 8] += 50
    answer = shown.ask("largest", row=row, size=[2, 2])
    assert (answer["show"], answer["where"], answer["hasLargest"]) == ([7, 8], "", True)
    equal = {"before": {"w": torch.ones(3), "v": torch.ones(2)}, "after": {"w": torch.ones(3), "v": torch.zeros(2)}}
    shown = Shown(equal, "before", "after")
    asked = {"row": shown.live.names.index("w"), "size": [2, 2]}
    assert shown.ask("largest", **asked)["where"] == "same bits"
    sides = [tnp.weights(one)["w"] for one in equal.values()]
    assert pair_of(*sides, tnp.compare(*sides), why="its gradient is 0").where == "same bits: its gradient is 0"
    equal["after"]["w"][2] = 5
    answer = shown.ask("largest", **asked)
    assert (answer["show"], answer["where"]) == ([2], "")


def test_a_weight_is_found_by_its_name_on_either_side_and_by_its_expression():
    """As `%tensorwatch` names it: `after.layers[3].attn.query.weight`."""
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    model = torch.nn.Module()
    model.layers = layers
    before = {f"module.{name}": one.detach() + 1 for name, one in model.state_dict().items()}
    shown = Shown({"before": before, "model": model}, "before", "model")
    every = shown.live.names
    for text in ("module.layers.1.weight", "/^layers.1.weight/", "layers[1].weight", "'module.layers.1.weight'"):
        assert [every[i] for i in shown.ask("search", text=text)["found"]] == ["module.layers.1.weight"], text
    assert len(shown.ask("search", text="layers")["found"]) == 4


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


def test_one_walks_by_index_and_step():
    """A step moves as little as it needs."""
    names = models()
    names["after"]["head"] = names["before"]["head"].clone()
    names["after"]["head"][1, 1], names["after"]["head"][3, 4] = 9, 9
    shown = Shown(names, "before", "after")
    row = shown.live.names.index("head")
    asked = {"row": row, "size": [2, 2]}
    assert shown.ask("window", **asked, index="3, 5")["corner"] == [2, 4]
    assert shown.ask("window", **asked, corner=[0, 0], show=[2, 1])["corner"] == [1, 0]
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


def test_files_and_memory_are_seen_side_by_side(tmp_path):
    """Of a file, the window is read."""
    names = models()
    path = str(tmp_path / "a.safetensors")
    save_file(names["before"], path)
    shown = Shown(names, path, "after")
    answer = shown.ask("largest", row=shown.live.names.index("head"), size=[2, 2])
    assert answer["windows"][2]["texts"][-1] == "+3.01"
    assert answer["show"] == [2, 5]


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


@pytest.mark.parametrize(
    "pair",
    [
        (torch.arange(6).view(2, 3), torch.arange(6).view(2, 3) * 2),
        (torch.tensor(1.5), torch.tensor(2.5)),
        (torch.randn(3), torch.randn(3).bfloat16()),
        (torch.randn(2, 3, 4), torch.randn(2, 3, 4)),
        (torch.randn(3, 3), torch.randn(3, 3).to_sparse()),
        (torch.tensor([True, False]), torch.tensor([True, True])),
        (torch.randn(3, dtype=torch.complex64), torch.randn(3, dtype=torch.complex64)),
        (torch.quantize_per_tensor(torch.randn(4), 0.1, 0, torch.qint8), torch.randn(4)),
        (torch.tensor([1.0, float("nan")]), torch.tensor([float("inf"), 2.0])),
    ],
    ids=["integers", "scalars", "two dtypes", "three axes", "sparse", "bool", "complex", "quantized", "not finite"],
)
def test_each_kind_opens(pair):
    """Whatever can be compared can be seen."""
    shown = Shown({"a": {"w": pair[0]}, "b": {"w": pair[1]}}, "a", "b")
    answer = shown.ask("largest", row=0, size=[3, 3])
    assert answer["type"] == "window", answer
    assert len(answer["windows"][0]["texts"]) == answer["size"][0] * answer["size"][1]


def test_weights_of_two_shapes_say_so():
    """There is no difference to be seen."""
    shown = Shown({"a": {"w": torch.zeros(2)}, "b": {"w": torch.zeros(3)}}, "a", "b")
    assert "shapes differ" in shown.ask("window", row=0, size=[2, 2])["text"]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_finite_on_one_side_alone_is_opened_before_any_difference(is_first):
    """It is more than the largest of these."""
    names = models()
    names["before" if is_first else "after"]["head"][1, 3] = float("nan")
    shown = Shown(names, "before", "after")
    assert shown.live.names[0] == "head"
    assert shown.ask("largest", row=0, size=[2, 2])["show"] == [1, 3]


def test_what_both_sides_have_that_is_not_finite_is_passed_over(monkeypatch):
    """A mask of -inf and a NaN of both are none; what is told is found in a thread that keeps no message waiting."""
    nan, inf = float("nan"), float("inf")
    before = torch.ones(40, 30)
    before[0, 0], before[1] = nan, -inf
    same, other_kind, one_sided = (before.clone() for _ in range(3))
    same[30, 3] += 5
    other_kind[1, 7], other_kind[30, 3] = inf, 6
    one_sided[20, 5], one_sided[30, 3] = nan, 6
    threads = []
    search = comparison.largest_difference
    monkeypatch.setattr(
        comparison, "largest_difference", lambda *pair: threads.append(threading.current_thread().name) or search(*pair)
    )
    for after, place in ((same, [30, 3]), (other_kind, [1, 7]), (one_sided, [20, 5])):
        for sides in ((before, after), (after, before)):
            shown = Shown({"a": {"w": sides[0]}, "b": {"w": sides[1]}}, "a", "b")
            assert shown.ask("largest", row=0, size=[2, 2])["show"] == place
    assert threads == ["tensornp worker"] * 6


def test_a_nested_tensor_is_not_seen_side_by_side():
    """Its parts have indices of their own."""
    nested = [torch.nested.nested_tensor([torch.arange(3.0), torch.arange(5.0) + i]) for i in range(2)]
    names = {"a": {"n": nested[0]}, "b": {"n": nested[1]}}
    said = Shown(names, "a", "b").ask("largest", row=0, size=[2, 2])["text"]
    assert said.startswith("'n' is nested, and is not seen side by side; tnp.compare(")
    code = said.partition("; ")[2].removesuffix(" compares its first parts")
    assert eval(code, {"tnp": tnp, **names}).equal, "the cure that is named compares the first parts"


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


def test_a_map_of_a_large_plane_is_offered_and_says_what_it_reads():
    """Of both sides."""
    large = {"w": torch.zeros(1).expand(5000, 5000)}
    shown = Shown({"a": large, "b": {"w": torch.ones(1).expand(5000, 5000)}}, "a", "b")
    assert shown.ask("window", row=0, size=[8, 6])["overview"] == "reads 190.7 MiB"


def test_a_click_on_the_map_shows_what_is_there_in_the_middle():
    """And not at the edge, as a step does."""
    shown = Shown(models(), "before", "after")
    asked = {"row": shown.live.names.index("layers.1.weight"), "size": [8, 6], "corner": [0, 0]}
    assert shown.ask("window", **asked, show=[20, 15], isInMiddle=True)["corner"] == [16, 12]
    assert shown.ask("window", **asked, show=[20, 15])["corner"] == [13, 10]


def test_a_pair_says_where_nearly_all_of_its_change_lies():
    """By its figures where one element has it, and else by a look at all, beside the messages; of what is finite."""
    names = models()
    names["after"]["layers.0.weight"] = names["before"]["layers.0.weight"].clone()
    names["after"]["layers.0.weight"][3:5] += 1
    shown = Shown(names, "before", "after")
    asked = {name: {"row": shown.live.names.index(name), "size": [2, 2]} for name in shown.live.names}
    seen = {name: shown.ask("window", **one) for name, one in asked.items()}
    assert seen["layers.1.weight"]["where"] == "nearly all of it in one element [39, 29]"
    assert (seen["layers.0.weight"]["where"], seen["layers.0.weight"]["isWhereFree"]) == ("", True)
    assert shown.ask("where", **asked["layers.0.weight"])["text"] == "nearly all of it in rows 3 to 4 of 40"
    assert shown.ask("where", **asked["layers.2.weight"])["text"] == "spread over all"
    names["after"]["layers.0.weight"][7, 7] = float("nan")
    names["after"]["layers.1.weight"][7, 7] = float("nan")
    shown = Shown(names, "before", "after")
    row = shown.live.names.index("layers.0.weight")
    assert (
        shown.ask("where", row=row)["text"] == "nearly all of it in rows 3 to 4 of 40, of what is finite on both sides"
    )
    row = shown.live.names.index("layers.1.weight")
    assert shown.ask("window", row=row, size=[2, 2])["where"].endswith("[39, 29], of what is finite on both sides")


def test_a_weight_is_found_by_the_middle_of_a_name_that_is_shown_without_it():
    """The pair says the whole."""
    name = "encoder." * 30 + "middle." + "layer." * 30 + "weight"
    before = {name: torch.zeros(3), "b": torch.ones(3)}
    shown = Shown({"a": before, "b": {name: one + 1 for name, one in before.items()}}, "a", "b")
    row = shown.live.names.index(name)
    assert shown.ask("search", text="middle")["found"] == [row]
    assert "middle" not in shown.live.rows[row]["cells"][0]
    answer = shown.ask("window", row=row, size=[2, 2])
    assert (len(answer["name"]), answer["title"]) == (120, name)


def test_it_is_known_how_many_weights_the_printed_lines_are_of():
    """Of more lines than are printed, not all."""
    before = {f"layers.{i}.weight": torch.zeros(3) for i in range(7)} | {"head": torch.zeros(2)}
    after = {name: one + 1 for name, one in before.items()}
    shown = Shown({"a": before, "b": after}, "a", "b")
    assert (len(shown.live.printed), shown.widget.num_printed) == (2, 8)
    before = {f"{'x' * i}_{'y' * i}": torch.zeros(i + 1) for i in range(1, 31)}
    shown = Shown({"a": before, "b": {name: one + 1 for name, one in before.items()}}, "a", "b")
    assert (len(shown.live.printed), shown.widget.num_printed) == (25, 25)
