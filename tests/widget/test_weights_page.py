"""The weights on a page, from the kernel's side: what a page asks for, it gets, and nothing else."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from page_part import PagePart, wait
from safetensors.torch import save_file
from tree_rows import findings_of, rows_of

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.errors import NoDataError
from tensornp.models.live.refind import released
from tensornp.models.module_view import view_of
from tensornp.widget.weights import WeightsWidget


class Reached:
    """Finds what a page asks for as the test wants it to be found, and tells it the test."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def __call__(self, expression: str) -> Any:
        self._shown.reached.append(expression)
        return self._shown.found(expression)


class Shown(PagePart):
    def __init__(self, obj: Any, **options: Any) -> None:
        self.explorer = tnp.weights(obj, expression="model")
        self.objects = {entry.code: entry.tensor for entry in self.explorer.values()}
        self.reached: list[str] = []
        self.found: Callable[[str], Any] = self.objects.__getitem__
        rows = [released(entry, Reached(self)) for entry in self.explorer.values()]
        super().__init__(WeightsWidget(rows, opened="w", anchor="a", **options))

    def rows(self, **request: Any) -> list[dict[str, Any]]:
        answer = self.ask("rows", **request)
        self.head = answer.get("head", getattr(self, "head", ""))
        return rows_of(answer["html"], self.head)

    def names(self, **request: Any) -> list[str]:
        return [row["name"] for row in self.rows(**request) if "name" in row]

    def columns(self) -> list[str]:
        return [*self.rows()[0]["cells"]]

    def findings(self) -> list[dict[str, Any]]:
        return findings_of(self.widget.findings)

    def scan(self) -> None:
        self.ask("scan")
        wait(lambda: self.widget.progress < 0)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)) for _ in range(12)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(4, 2, bias=False))


@pytest.fixture
def shown():
    made: list[Shown] = []

    def make(*args: Any, **options: Any) -> Shown:
        made.append(Shown(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.widget.close()


def test_the_tree_folds_what_repeats_and_opens_what_is_asked_for(shown):
    """A pattern opens into the weights that it stands for; each row tells its level."""
    page = shown(net())
    first = page.rows()
    assert [row["name"] for row in first] == [
        "{0..11}", "0", "weight", "bias", "1", "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
        "12.weight",
    ]  # fmt: skip
    assert first[0]["cells"]["shape"] == "84 weights"
    weight = first[2]
    assert (weight["level"], weight["open"], weight["number"]) == (3, False, -1)
    assert weight["cells"]["bytes"] == "12 × 64 bytes"
    below = page.rows(parent=weight["id"])
    assert [row["name"] for row in below] == [str(i) for i in range(12)]
    assert [row["title"].split("\n")[0] for row in below[:2]] == ["0.0.weight", "1.0.weight"]
    assert {row["level"] for row in below} == {4}
    assert page.names(opened=[]) == ["{0..11}", "12.weight"]
    opened = [row["id"] for row in first[:2]]
    assert page.names(opened=opened) == ["{0..11}", "0", "weight", "bias", "1", "12.weight"]
    assert page.reached == []


def test_states_that_are_not_there_are_not_counted(shown):
    """An optimizer has none of a frozen parameter."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4).requires_grad_(False), torch.nn.Linear(4, 4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    assert shown(optimizer).rows()[0]["cells"]["shape"] == "6 states"


def test_a_list_is_searched_and_sorted(shown):
    """As `find` does; a bad pattern is a sentence."""
    page = shown(net())
    assert page.names(search="*0.weight") == [f"{i}.0.weight" for i in range(12)]
    answer = page.ask("rows", search="/^(1|12)\\..*weight/")
    assert page.names(search="/^(1|12)\\..*weight/") == ["1.0.weight", "1.1.weight", "12.weight"]
    assert answer["text"] == "3 of 85 weights · 28 elements · 112 bytes"
    assert "is not a regular expression" in page.ask("rows", search="/(/")["text"]
    assert page.names(search=r"/^(\d+\.)+weight$/") == page.names(search="weight")
    assert page.names(sort="name")[:3] == ["0.0.bias", "0.0.weight", "0.1.bias"]
    assert page.names(sort="name", search="weight")[2:4] == ["1.0.weight", "1.1.weight"]
    assert page.names(sort="bytes", descending=True)[0].endswith("0.weight")


def test_one_weight_is_read_when_it_is_opened(shown, tmp_path):
    """Facts, what NumPy prints, and expressions that give it."""
    torch.manual_seed(0)
    tensors = {"a.weight": torch.randn(300, 300), "a.bias": torch.ones(3)}
    save_file(tensors, tmp_path / "m.safetensors")
    page = shown(tmp_path / "m.safetensors")
    number = page.rows(search="weight")[0]["number"]
    answer = page.ask("open", row=number)
    assert html.escape(repr(tensors["a.weight"].numpy())) in answer["html"]
    assert "(300, 300)" in answer["html"]
    assert eval(answer["copies"]["NumPy"], {"w": page.explorer}).tolist() == tensors["a.weight"].tolist()
    stats = page.ask("stats", row=number)["html"]
    assert "90,000" in stats and 'data-seek="min"' in stats and stats.count("data:image/png;base64,") == 2
    assert page.ask("values", row=number)["name"] == answer["copies"].get("PyTorch", "the tensor")
    seen = page.ask("move", corner=[3, 4], size=[1, 2])
    assert [float(one) for one in seen["exact"]] == pytest.approx(tensors["a.weight"][3, 4:6].tolist())


def test_a_scan_shows_findings_where_they_are(shown, monkeypatch):
    """In the line of the weight, or in the nearest closed one that is seen; and first where sorted by them."""
    monkeypatch.setattr("tensornp.core.lowlevel.gradients.backward_runs_elsewhere", lambda: False)
    model = net()
    with torch.no_grad():
        model[3][0].weight[1, 2] = torch.nan
    page = shown(model)
    number = [*page.explorer].index("3.0.weight")
    assert "findings" not in page.columns()
    page.scan()
    rows = page.rows()
    assert {"values", "findings"} < {*page.columns()}
    worst = page.rows(sort="findings")[0]
    assert (worst["name"], worst["link"], worst["cells"]["findings"]) == ("3.0.weight", ("1 NaN", number, "nan"), "")
    assert worst["pictures"] == 1
    told = ("1 NaN in 3", number, "nan")
    assert [row["link"] for row in rows if row["link"]] == [told]
    assert next(row for row in rows if row["link"])["name"] == "weight"
    closed = page.rows(opened=[])[0]
    assert (closed["name"], closed["link"]) == ("{0..11}", ("1 NaN in 3.0.weight", number, "nan"))
    assert closed["cells"]["findings"].endswith(" all ones or all zeros")
    assert rows[0]["cells"]["findings"] == ""
    table = page.explorer.scan()
    assert page.widget.scanned == " · ".join(table.told())
    assert page.widget.scanned.startswith("85 weights · 1 finding, ")
    assert repr(table) == f"<ScanTable of {', '.join(table.told())}>"


def test_a_nan_of_the_card_is_in_its_row_and_opens_no_empty_columns(shown):
    """A scan has more to say; a module without weights has no number of elements."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    model[0].weight.data[1, 2] = torch.nan
    page = shown(model, classes=tnp.weights(model).classes)
    columns = page.columns()
    page.widget.tell(view_of(page.explorer, DisplayOptions()))
    assert page.columns() == columns
    rows = {row["name"]: row for row in page.rows()}
    assert rows["weight"]["link"][0] == "1 NaN"
    assert rows["1"]["cells"]["elements"] == ""


def test_figures_are_columns_that_sort(shown):
    """In the order of a heading, the figures of each weight; a closed line has the largest."""
    model = net()
    page = shown(model)
    assert "norm" not in page.columns()
    page.scan()
    names = page.columns()
    assert names[names.index("values") + 1 : names.index("findings")] == ["norm", "mean", "std", "max |x|", "zeros"]
    norms = {name: one.detach().double().norm().item() for name, one in model.named_parameters()}
    below = [norm for name, norm in norms.items() if name != "12.weight"] + [
        one.double().norm().item() for one in model.buffers()
    ]
    assert page.rows(opened=[])[0]["cells"]["norm"] == f"up to {max(below):#.3g}"
    listed = page.rows(sort="norm", descending=True)
    parameters = [row["cells"]["norm"] for row in listed if row["name"] in norms]
    assert [row["name"] for row in listed if row["name"] in norms] == sorted(norms, key=lambda name: -norms[name])
    assert parameters == [f"{norm:#.3g}" if norm else "0" for norm in sorted(norms.values())[::-1]]


def test_gradients_are_columns_where_there_are_any(shown, monkeypatch):
    """Their norms, and the ratios to those of the weights; it is told where they could not be looked at."""
    monkeypatch.setattr("tensornp.core.lowlevel.gradients.backward_runs_elsewhere", lambda: False)
    model = torch.nn.Linear(3, 4)
    page = shown(model)
    page.scan()
    assert "grad norm" not in page.columns()
    model(torch.ones(2, 3)).square().sum().backward()
    page.scan()
    assert page.columns()[-3:] == ["grad norm", "grad / weight", "findings"]
    norm, gradient = (one.detach().double().norm().item() for one in (model.weight, model.weight.grad))
    cells = page.rows()[0]["cells"]
    assert (cells["grad norm"], cells["grad / weight"]) == (
        f"{gradient:#.3g}".removesuffix("."),
        f"{gradient / norm:#.3g}".removesuffix("."),
    )
    model.weight.grad[2, 1] = torch.nan
    page.scan()
    told = page.findings()[0]
    assert (told["text"], told["name"], told["isAlarm"]) == (
        "1 weight has NaN or infinities in the gradient",
        "weight",
        True,
    )
    monkeypatch.setattr("tensornp.core.lowlevel.gradients.backward_runs_elsewhere", lambda: True)
    page.scan()
    assert page.widget.scanned.endswith(" · another thread runs a backward: gradients were not read")


def test_findings_lead_to_the_weights_that_have_them_and_no_others(shown):
    """However many others have something more serious; and one that is opened says what it equals."""
    page = shown({**{f"c{i}": torch.full((2,), 3.0 + i) for i in range(5)}, "a": torch.ones(3).cumsum(0),
                  "b": torch.ones(3).cumsum(0), "d": torch.zeros(4)})  # fmt: skip
    page.scan()
    whats = {one["text"]: one["list"] for one in page.findings()}
    assert page.names(search=whats["2 with the same values"]) == ["a", "b"]
    assert page.names(search=whats["5 constant"]) == ["c0", "c1", "c2", "c3", "c4"]
    assert page.names(search="made up") == []
    facts = page.ask("open", row=[*page.explorer].index("a"))["html"]
    assert "found by the scan: the same values as &#x27;b&#x27;" in facts
    page.ask("scan", search=whats["2 with the same values"])
    wait(lambda: page.widget.progress < 0)
    assert page.widget.scanned.startswith("2 weights")


def test_what_is_not_finite_is_told_with_its_place(shown):
    """A NaN before an infinity; of what is finite, nothing."""
    model = net()
    page = shown(model)
    page.scan()
    assert not any(one["isAlarm"] for one in page.findings())
    with torch.no_grad():
        model[1][0].weight[0, 0] = torch.inf
        model[3][0].bias[2] = torch.nan
    page.scan()
    number = [*page.explorer].index("3.0.bias")
    nan, inf, *others = page.findings()
    told = {"text": "1 weight has NaN", "isAlarm": True, "name": "3.0.bias", "list": ""}
    assert nan == {**told, "number": number, "goal": "nan"}
    assert (inf["text"], inf["name"], inf["goal"]) == ("1 weight has infinities", "1.0.weight", "inf")
    assert not any(one["isAlarm"] or one["goal"] for one in others)
    alarms = {row["name"]: row["link"] for row in page.rows(sort="findings")}
    assert (alarms["3.0.bias"][0], alarms["1.0.weight"][0], alarms["2.0.bias"]) == ("1 NaN", "1 +Inf", None)
    assert page.ask("values", row=number, goal="nan")["goal"] == "nan"
    assert page.ask("values", row=number, goal="widest")["type"] == "error"


def test_a_scan_can_be_ended(shown):
    """What was read stays."""
    page = shown({str(i): torch.ones(1000) for i in range(50)})
    page.ask("rows")
    page.found = lambda code: (page.ask_end() if code == "model['5']" else None) or page.objects[code]
    page.ask_end = lambda: page.send({"type": "end", "page": "p", "number": 99})
    page.ask("scan")
    wait(lambda: page.widget.progress < 0)
    assert "stopped" in page.widget.scanned
    page.found = page.objects.__getitem__
    page.scan()
    assert "stopped" not in page.widget.scanned


def test_what_is_gone_is_said(shown):
    """Whatever is asked for."""
    page = shown(net())
    page.ask("rows")

    def gone(expression: str) -> Any:
        raise NoDataError(f"{expression} is gone")

    page.found = gone
    for kind in ("open", "stats", "values", "bind"):
        answer = page.ask(kind, row=0, open=True, name="x")
        assert answer["type"] == "error", kind
    assert page.answers[0]["type"] == "rows"


def test_an_array_is_bound_to_a_name(shown):
    """By whoever binds."""
    bound = {}
    page = shown(net(), binder=lambda name, make, overwrite: bound.update({name: (make(), overwrite)}))
    page.ask("rows")
    assert page.ask("bind", row=0, name="x")["text"].startswith("assigned to x: tnp.to_numpy(model[0][0].weight)")
    array, overwrite = bound["x"]
    assert array.shape == (4, 4)
    assert overwrite is False


@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_window_is_bound_to_a_name(shown, tmp_path, place):
    """A name is offered that can be bound, of the last parts of the weight's."""
    weights = {
        "encoder.query.weight": torch.arange(600.0).reshape(20, 30),
        "0.weight": torch.ones(3),
        "0": torch.ones(2),
    }
    save_file(weights, tmp_path / "m.safetensors")
    bound = {}
    source = tmp_path / "m.safetensors" if place == "file" else weights
    page = shown(source, binder=lambda name, make, overwrite: bound.update({name: make()}))
    offered = {name: page.ask("values", row=row)["suggestion"] for row, name in enumerate(page.explorer)}
    assert offered == {"encoder.query.weight": "query_weight_np", "0.weight": "weight_np", "0": "array_np"}
    page.ask("values", row=[*page.explorer].index("encoder.query.weight"))
    assert page.ask("bind window", name="part", corner=[3, 4], size=[5, 6])["text"] == "assigned to part"
    np.testing.assert_array_equal(bound["part"], weights["encoder.query.weight"][3:8, 4:10].numpy())


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "rows", "parent": "0"},
        {"type": "rows", "parent": 10**9},
        {"type": "rows", "parent": -1},
        {"type": "rows", "reveal": 10**9},
        {"type": "rows", "search": 3},
        {"type": "rows", "search": "x" * 2000},
        {"type": "rows", "sort": "nothing"},
        {"type": "rows", "opened": list(range(20_000))},
        {"type": "rows", "opened": ["x"]},
        {"type": "open", "row": -1},
        {"type": "open", "row": 10**9},
        {"type": "open"},
        {"type": "stats", "row": True},
        {"type": "bind", "row": 0, "name": None},
    ],
)
def test_nonsense_is_answered_by_a_sentence(shown, request_):
    """And the next question is answered as ever."""
    page = shown(net(), binder=lambda *_: None)
    kind = request_.pop("type")
    assert page.ask(kind, **request_)["type"] == "error"
    assert page.names()[0] == "{0..11}"
