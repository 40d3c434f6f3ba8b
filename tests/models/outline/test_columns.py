"""A column of weights is one row: whatever shows, sorts or chooses weights knows it then."""

from __future__ import annotations

import torch

import tensornp as tnp
from tensornp.models.outline import columns
from tensornp.models.outline.columns import Column, at_a_glance
from tensornp.render.models.weights import weights_document
from tensornp.widget.weights import WeightsWidget


def test_a_column_is_a_row(monkeypatch):
    """A made-up one is in the table, in the page, and in what that may sort and choose by; nothing else is touched."""
    axes = Column(
        "axes", lambda row: f"{len(row.entries[0].shape)} axes", lambda one: len(one.shape),
        lambda one: str(len(one.shape)), is_said_once=True,
    )  # fmt: skip
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS[:3], axes, *columns.COLUMNS[3:]))
    explorer = tnp.weights({"a": torch.ones(2, 3), "b": torch.ones(4), "c": torch.ones(1, 1, 1)})
    assert weights_document(explorer).text().splitlines()[1].split() == ["name", "shape", "axes", "bytes"]
    assert ">3 axes</td>" in weights_document(explorer).html()
    widget, answers = WeightsWidget(explorer.values(), opened="w", anchor="a"), []
    widget.send = lambda content, buffers=None: answers.append(content)
    for request in ({"sort": "axes"}, {"filters": {"axes": "2"}}):
        widget._receive(None, {"type": "lines", "page": "p", "number": 0, "first": 0, "count": 9, **request}, [])
    widget.close()
    by_axes, chosen = answers
    assert [column["name"] for column in by_axes["columns"]] == ["name", "shape", "axes", "elements", "share", "bytes"]
    assert [line["cells"]["axes"] for line in by_axes["lines"]] == ["1 axes", "2 axes", "3 axes"]
    assert {"column": "axes", "label": "axes", "values": ["1", "2", "3"]} in by_axes["choices"]
    assert [line["cells"]["name"] for line in chosen["lines"]] == ["a"]


def test_elements_and_their_share_of_all_are_told():
    """Of a weight and of all below a line, each once; a share under half a percent is blank."""
    shared = torch.ones(30_000)
    sizes = {"g.a": shared, "g.b": torch.ones(100), "h": torch.ones(9_900), "i": torch.ones(1_250_000), "j": shared}
    widget, answers = WeightsWidget(tnp.weights(sizes).values(), opened="w", anchor="a"), []
    widget.send = lambda content, buffers=None: answers.append(content)
    widget._receive(None, {"type": "lines", "page": "p", "number": 0, "first": 0, "count": 9}, [])
    widget.close()
    told = {
        line["cells"]["name"]: [line["cells"].get(name, "") for name in ("elements", "share")]
        for line in answers[0]["lines"]
    }
    assert told == {
        "g": ["30.10 K", "2%"], "a": ["30.00 K", "2%"], "b": ["100", ""], "h": ["9,900", "1%"], "i": ["1.250 M", "97%"],
        "j": ["30.00 K", ""],
    }  # fmt: skip


def test_a_weight_whose_name_others_go_on_from_has_a_share_of_its_own():
    """As in state dicts of bitsandbytes: together they are all there is, and no more; of folded ones too."""
    for names in (["l0"], ["layers.0", "layers.1"]):
        held = {f"{name}.weight": torch.ones(70) for name in names}
        held |= {f"{name}.weight.absmax": torch.ones(30) for name in names}
        widget, answers = WeightsWidget(tnp.weights(held).values(), opened="w", anchor="a"), []
        widget.send = lambda content, buffers=None, answers=answers: answers.append(content)
        widget._receive(None, {"type": "lines", "page": "p", "number": 0, "first": 0, "count": 9}, [])
        widget.close()
        cells = [line["cells"] for line in answers[0]["lines"]]
        # A pattern stands before the weights into which it opens.
        told = {one["name"].rpartition(".")[2]: (one["elements"], one["share"]) for one in reversed(cells)}
        is_one = len(names) == 1
        assert told["weight"] == (("70", "70%") if is_one else ("2 × 70", "35% each"))
        assert told["absmax"] == (("30", "30%") if is_one else ("2 × 30", "15% each"))


def test_a_number_of_four_or_five_digits_is_whole_and_any_other_has_three():
    """So that it is never longer than with a power of ten."""
    told = [at_a_glance(value) for value in (0, 0.0, 15.99, 999.4, 999.6, 1122.3, -65504.0, 99_999.4, 1e5, 1e-9)]
    assert told == ["0", "0", "16.0", "999", "1000", "1122", "−65504", "99999", "1.00e+05", "1.00e−09"]
