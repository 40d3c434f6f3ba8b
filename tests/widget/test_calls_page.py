"""The calls of a pass on a page, from the kernel's side: what a page asks for, it gets, and nothing else."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from typing import Any

import pytest
import torch
from built_passes import Builder, figures, transformer, value

import tensornp as tnp
from tensornp.passes.follow import FollowedPass
from tensornp.passes.records import Gradient, PassRecord
from tensornp.widget.passes.calls import CallsWidget
from tensornp.widget.tree_requests import MAX_LINES, NONSENSE


def run_of(record: PassRecord) -> FollowedPass:
    """Return a pass that is over, as from a pickle."""
    run = FollowedPass()
    run.__setstate__(record)
    return run


class Shown:
    """A widget, and the page's part in it."""

    def __init__(self, record: PassRecord, opened: str = "run") -> None:
        self._record, self.answers = record, []
        self.widget = CallsWidget(pickle.loads(pickle.dumps(run_of(record))), opened=opened, anchor="a")
        self.widget.send = self.take

    def take(self, content: dict[str, Any], buffers: Any = None) -> None:
        """Hear an answer, as a page does: by JSON, which has no NaN."""
        self.answers.append(json.loads(json.dumps(content, allow_nan=False)))

    def ask(self, kind: str, **request: Any) -> dict[str, Any]:
        """Return the answer to a request, which has its number."""
        number = len(self.answers)
        self.widget._receive(None, {"type": kind, "page": "p", "number": number, **request}, [])
        answer: dict[str, Any] = self.answers[-1]
        assert answer["number"] == number
        return answer

    def lines(self, **request: Any) -> list[dict[str, Any]]:
        return self.ask("lines", **{"count": MAX_LINES, **request})["lines"]

    def names(self, **request: Any) -> list[str]:
        return [line["cells"]["name"] for line in self.lines(**request)]

    def index(self, name: str) -> int:
        return next(call.index for call in self._record.calls if call.name == name)

    def open(self, name: str) -> dict[str, Any]:
        return self.ask("open", row=self.index(name))


NAN = transformer(nan_in="layers.3.attn.drop")


def test_repeats_are_one_line_until_they_are_unfolded_into_the_calls():
    """Each of which opens into what it has called."""
    page = Shown(transformer())
    lines = page.lines()
    assert [line["cells"]["name"] for line in lines] == ["model", "embed", "layers.{0..11}", "norm", "head"]
    fold = lines[2]
    assert (fold["number"], fold["open"], fold["level"], fold["className"]) == (-1, False, 2, "Block")
    assert fold["branch"] >= len(page._record.calls)
    opened = page.names(toggled=[fold["branch"]])
    assert opened[2:15] == ["layers.{0..11}", *(f"layers.{i}" for i in range(12))]
    third = next(one for one in page.lines(toggled=[fold["branch"]]) if one["cells"]["name"] == "layers.2")
    assert (third["level"], third["position"], third["size"]) == (3, 3, 12)
    assert page.names(toggled=[fold["branch"], third["branch"]])[5:8] == ["layers.2", "norm1", "attn"]


def test_what_was_born_is_seen_at_first_with_one_alarm_and_what_comes_behind_is_quiet():
    """A branch that is closed tells the alarm inside it, and where."""
    page = Shown(NAN)
    lines = page.lines()
    born = page.index("layers.3.attn.drop")
    assert [line["number"] for line in lines if line["alarm"]] == [born]
    at = next(i for i, line in enumerate(lines) if line["alarm"])
    assert lines[at]["alarm"] == {"text": "first NaN", "number": born, "goal": ""}
    assert not any(line["isQuiet"] for line in lines[: at + 1])
    assert all(line["isQuiet"] for line in lines[at + 1 :])
    layer = page.index("layers.3")
    closed = next(line for line in page.lines(toggled=[layer]) if line["number"] == layer)
    assert closed["alarm"] == {"text": "first NaN in attn.drop", "number": born, "goal": ""}


def test_a_call_is_revealed_in_whatever_is_closed():
    """Its line is told, and what is open then."""
    page = Shown(transformer())
    number = page.index("layers.7.mlp.down")
    answer = page.ask("lines", count=20, reveal=number)
    line = answer["lines"][answer["revealed"] - answer["first"]]
    assert line["number"] == number
    assert page.ask("lines", count=20, toggled=answer["toggled"])["total"] == answer["total"]
    assert page.ask("lines", count=20, reveal=number, search="embed")["revealed"] == -1


def test_a_list_is_searched_sorted_and_filtered():
    """By the grammar of all searches; NaN is the greatest of all, and what has no number comes last."""
    page = Shown(NAN)
    assert page.names(search="layers.{2..3}.attn.drop") == ["layers.2.attn.drop", "layers.3.attn.drop"]
    answer = page.ask("lines", count=20, search="attn.dorp")
    assert (answer["lines"], answer["nothing"]) == ([], "no name fits 'attn.dorp'; the closest is 'attn'")
    assert "(" in page.ask("lines", search="/(/")["text"]
    norms = [line["cells"]["norm"] for line in page.lines(sort="norm", descending=True)]
    assert norms[0] == "nan"
    smallest = page.lines(sort="norm")
    assert smallest[0]["cells"]["norm"] != "nan" and smallest[0]["level"] == 1
    classes = {line["cells"]["name"].rpartition(".")[2] for line in page.lines(filters={"class": "Dropout"})}
    assert classes == {"drop"}
    assert page.ask("lines", count=1, filters={"state": "NaN"})["text"].endswith(f"of {len(NAN.calls)} calls")
    assert [one["column"] for one in page.ask("lines")["choices"]] == ["class", "state"]


def test_an_opened_call_tells_all_that_it_got_and_gave():
    """What another call has made leads to that; where nothing is said, there is no column."""
    built = Builder()
    with built.call("", "Net", code="net"):
        built.leaf("embed", "Embedding", outputs=(value(),))
        came = value(path="[0]", made_by="embed", maker=1)
        gave = value(grad=figures(0.1), relation="view")
        held = value((256,), path="weight", sample=())
        built.leaf("norm", "LayerNorm", inputs=(came,), outputs=(gave,), params=(held,), thread="MainThread")
    page = Shown(PassRecord(tuple(built.calls), (Gradient("norm.weight", figures(0.05)),)))
    seen = page.open("norm")
    assert (seen["name"], seen["className"], seen["code"]) == ("norm", "LayerNorm", "run['norm']")
    facts = dict(seen["facts"])
    assert facts == {
        "inside": "Net", "phase": "forward", "status": "returned", "thread": "MainThread", "dtype": "float32",
        "device": "cpu",
    }  # fmt: skip
    headings = [one["text"] for one in seen["headings"]]
    assert headings == ["value", "shape", "min … max", "mean", "norm", "made by", "relation"]
    assert [group["title"] for group in seen["groups"]] == ["inputs", "outputs", "parameters"]
    (got,), (gave, back), (held, learnt) = (group["rows"] for group in seen["groups"])
    assert got[headings.index("made by")] == {"text": "embed", "number": 1}
    assert gave[headings.index("relation")]["text"] == "view"
    assert [row[0]["text"] for row in (gave, back, held, learnt)] == ["result", "gradient", "weight", "gradient"]
    assert [row[headings.index("norm")]["text"] for row in (back, learnt)] == ["1", "0.5"]
    assert seen["pictures"][0]["caption"] == "result · sample of 256 of 131,072"


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "lines", "sort": "marks"},
        {"type": "lines", "sort": 3},
        {"type": "lines", "filters": {"dtype": "float32"}},
        {"type": "lines", "filters": {"class": 3}},
        {"type": "lines", "toggled": ["x"]},
        {"type": "lines", "reveal": 10**9},
        {"type": "lines", "reveal": -1},
        {"type": "lines", "first": True},
        {"type": "open"},
        {"type": "open", "row": -1},
        {"type": "open", "row": 10**9},
        {"type": "open", "row": True},
    ],
)
def test_what_makes_no_sense_is_refused(request_):
    """Each message is checked whole."""
    page = Shown(NAN)
    kind = request_.pop("type")
    assert page.ask(kind, **request_) == {"type": "error", "text": NONSENSE, "page": "p", "number": 0}


def test_of_what_was_closed_nothing_is_held():
    """A page that asks then gets nothing."""
    page = Shown(NAN)
    page.lines()
    page.widget.close()
    assert page.ask("lines", count=20)["lines"] == []
    assert page.ask("open", row=0)["type"] == "error"


def followed(**options: Any) -> FollowedPass:
    """Return a pass of which what the first of two layers got and gave was kept."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 200), torch.nn.ReLU())
    with tnp.follow(model, keep="0", **options) as run:
        model(torch.ones(40, 3))
    return run


def test_what_was_kept_is_looked_at_and_goes_with_the_pass():
    """By an expression that reaches it; of what was not kept, it is said what would keep it."""
    page, run = Shown(PassRecord()), followed()
    page.widget, page._record = CallsWidget(run, opened="run", anchor="a"), run._record
    page.widget.send = page.take
    seen = page.open("0")
    assert [group["rows"][0][0].get("kept") for group in seen["groups"]] == [0, 1, None]
    assert seen["hint"] == ""
    assert page.open("1")["hint"] == "%%follow --keep 1"
    assert page.ask("values", row=page.index("0"), value=1, open=True) == {
        "type": "values", "open": True, "page": "p", "number": 2,
    }  # fmt: skip
    looked_at = page.widget._navigator._looked_at
    assert looked_at.name == "run['0'].outputs[0].tensor"
    assert torch.equal(looked_at.held(), eval(looked_at.name, {"run": run}))
    for wrong in ({"row": 0, "value": 0}, {"row": 1, "value": 2}, {"row": 1, "value": None}, {"row": -1, "value": 0}):
        assert page.ask("values", open=True, **wrong)["text"] == NONSENSE
    gone = weakref.ref(run._record.calls[1].outputs[0].tensor)
    page._record = PassRecord()
    del run
    gc.collect()
    assert gone() is None
    with pytest.raises(tnp.NoDataError, match="has gone with the pass"):
        looked_at.held()


def test_operators_stand_in_the_call_that_they_were_called_in():
    """With the one in which a NaN was born; of very many, those around it."""

    class Far(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(20):
                x = x + 1
            x = (x - 1e6).log()
            for _ in range(20):
                x = x * 2
            return x

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), Far())
    with tnp.follow(model, level="operators") as run:
        held = model(torch.ones(5, 3))
    assert held.isnan().all()
    page = Shown(run._record)
    (group,) = page.open("1")["operators"]["groups"]
    names = [row[0]["text"] for row in group["rows"]]
    assert [row[0]["text"] for row in group["rows"] if row[0]["alarm"]] == ["log"]
    assert len(names) == 30 and names[14:17] == ["sub", "log", "mul"]
    assert group["more"] == "12 more operators"
    assert [row[0]["alarm"] for group in page.open("0")["operators"]["groups"] for row in group["rows"]] == [""]
    assert Shown(NAN).open("head")["operators"]["groups"] == []


def test_dead_units_are_marked():
    """As they are in the static tree."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 20), torch.nn.ReLU())
    with torch.no_grad():
        model[0].bias[:5] = -1000.0
    with tnp.follow(model) as run:
        model(torch.randn(64, 8, generator=torch.Generator().manual_seed(0)))
    marks = {line["cells"]["name"]: line["cells"]["marks"] for line in Shown(run._record).lines()}
    assert (marks["0"], marks["1"]) == ("", "5 of 20 units dead")
