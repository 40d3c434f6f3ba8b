"""The calls of a pass on a page, from the kernel's side: what a page asks for, it gets, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from built_passes import Built, Run, transformer, value
from page_part import PagePart
from tree_rows import rows_of

from tensornp.passes.records import PassRecord, Step
from tensornp.widget.calls import CallsWidget
from tensornp.widget.page import NONSENSE


class Shown(PagePart):
    def __init__(self, record: PassRecord, opened: str = "run") -> None:
        self.record = record
        super().__init__(CallsWidget(Run(record), opened=opened, anchor="a"))

    def rows(self, **request: Any) -> list[dict[str, Any]]:
        answer = self.ask("rows", **request)
        return rows_of(answer["html"], answer.get("head") or self.ask("rows")["head"])

    def names(self, **request: Any) -> list[str]:
        return [row["name"] for row in self.rows(**request)]

    def index(self, name: str) -> int:
        return next(call.index for call in self.record.calls if call.name == name)


NAN = transformer(nan_in="layers.3.attn.drop")


def test_trouble_is_seen_at_first_with_one_alarm_and_what_comes_after_is_quiet():
    page = Shown(NAN)
    rows = page.rows()
    drop = page.index("layers.3.attn.drop")
    at = next(i for i, row in enumerate(rows) if row["number"] == drop)
    assert [row["link"] for row in rows if row["link"]] == [("first NaN", drop, "")]
    assert not any(row["quiet"] for row in rows[: at + 1])
    assert all(row["quiet"] for row in rows[at + 1 :])


def test_a_call_is_revealed_in_whatever_is_closed():
    page = Shown(transformer())
    number = page.index("layers.7.mlp.down")
    rows = page.rows(opened=[], reveal=number)
    (row,) = (one for one in rows if one["number"] == number)
    assert [one["level"] for one in rows if one["open"]] == [1, 2, 3, 4]
    assert row["level"] == 5


def test_a_list_is_searched_and_sorted():
    """NaN is the greatest number, and unknown numbers come last."""
    page = Shown(NAN)
    assert page.names(search="layers.{2..3}.attn.drop") == [
        "layers.2.attn.drop (Dropout)", "layers.3.attn.drop (Dropout)",
    ]  # fmt: skip
    answer = page.ask("rows", search="attn.dorp")
    assert rows_of(answer["html"], "") == [{"more": "no name fits 'attn.dorp'; the closest is 'attn'"}]
    assert "(" in page.ask("rows", search="/(/")["text"]
    for column in ("‖out‖", "min … max"):
        assert page.rows(sort=column, descending=True)[0]["cells"][column] == "nan"
        assert page.rows(sort=column)[0]["cells"][column] != "nan"
    assert page.ask("rows", sort="‖out‖")["text"] == "148 of 148 calls"


def test_an_opened_call_is_its_card_with_links():
    built = Built()
    with built.call("", "Net", code="net"):
        built.leaf("embed", "Embedding", outputs=value(maker=2))
        built.leaf("norm", "LayerNorm", inputs=value(maker=2), outputs=value(maker=3))
        built.operator("add", inputs=value(maker=3), outputs=value(maker=4))
    page = Shown(built.record())
    seen = page.ask("open", row=3)
    assert (seen["name"], [*seen["copies"]]) == ("norm (LayerNorm)", ["run['norm']"])
    assert re.search(r'<button [^>]*data-to="2"[^>]*>embed \(Embedding\)</button>', seen["html"])
    assert "inside Net" in seen["html"] and "%%follow --keep norm" in seen["html"]
    operator = page.ask("open", row=4)
    assert (operator["name"], [*operator["copies"]]) == ("add", ["run[4]"])
    assert Shown(built.record(), opened="").ask("open", row=3)["copies"] == {}


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "rows", "sort": "marks"},
        {"type": "rows", "opened": ["x"]},
        {"type": "rows", "reveal": 0},
        {"type": "rows", "parent": True},
        {"type": "open", "row": 0},
        {"type": "open", "row": 10**9},
        {"type": "values", "row": 1, "value": 0},
        {"type": "values", "row": 1, "value": -1},
    ],
)
def test_nonsense_is_refused(request_):
    page = Shown(NAN)
    kind = request_.pop("type")
    assert page.ask(kind, **request_) == {
        "type": "error", "text": NONSENSE, "canOverwrite": False, "page": "p", "number": 0
    }  # fmt: skip


def test_a_closed_widget_lets_go_of_the_pass():
    page = Shown(NAN)
    page.rows()
    page.widget.close()
    page.send({"type": "rows", "page": "p", "number": 1})
    assert len(page.answers) == 1 and not hasattr(page.widget, "_run")


def test_a_kept_value_opens_in_the_navigator():
    built = Built()
    kept = torch.arange(6.0).reshape(2, 3)
    built.leaf("fc", "Linear", inputs=value(), outputs=value((2, 3), tensor=kept))
    page = Shown(built.record())
    html = page.ask("open", row=1)["html"]
    assert re.search(r'<button [^>]*data-kept="1"[^>]*>output</button>', html) and "--keep" not in html
    assert page.ask("values", row=1, value=1)["name"] == "fc (Linear)"
    assert page.ask("move")["exact"] == ["0.0", "1.0", "2.0", "3.0", "4.0", "5.0"]
    assert page.ask("values", row=1, value=0)["text"] == NONSENSE


@pytest.mark.parametrize(
    ("cell", "has_steps", "finder"),
    [
        ("Net()(x)", True, ""),
        ("act(x)", False, "%%follow --operators --only act act\nact(x)"),
        ("act(x)", True, ""),
        ("act = Net()\nact(x)", True, "%%follow --operators --only act act\nact = Net()\nact(x)"),
    ],
)
def test_the_cell_that_finds_the_operator_begins_where_the_pass_began(cell, has_steps, finder):
    """Not with weights that a step has changed, unless the cell makes them."""
    built = Built()
    built.leaf("act", "ReLU", code="act" if "act" in cell else "", outputs=value(is_nan=True))
    run = Run(built.record(steps=[Step("SGD", None, 2, 1, 1)] * has_steps))
    run._cell = f"act\n{cell}"
    assert CallsWidget(run).finder == finder
