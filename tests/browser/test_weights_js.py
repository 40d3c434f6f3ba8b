"""The weights' ES module in a blank page: a real widget answers it, one request at a time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import save_file

import tensornp as tnp
from browser.announced import Announced
from browser.contrast import illegible
from browser.module_page import ModulePage
from browser.test_toggle_js import LAB_DARK
from tensornp.models.entries.released import Find, released
from tensornp.widget.weights import WeightsWidget


class Reached(Find):
    """Finds the weights of a tree, unless the test says that they are gone."""

    def __init__(self, tree: Tree, name: str) -> None:
        self._tree, self._name = tree, name

    def __call__(self, expression: str) -> Any:
        if self._tree.is_gone:
            raise tnp.NoDataError(f"{self._name} is gone")
        return self._tree.explorer[self._name].tensor


class Tree(ModulePage):
    """A tree of weights in a page, and the kernel's part in it."""

    is_gone = False

    def __init__(self, page: Page, obj: Any, *, css: str = "") -> None:
        self.explorer = tnp.weights(obj)
        rows = [released(entry, Reached(self, entry.name)) for entry in self.explorer.values()]
        widget = WeightsWidget(rows, opened="w", anchor="a", binder=lambda *_: None, classes=self.explorer.classes)
        super().__init__(page, widget, "weights", css=css)
        self.grid = page.get_by_role("treegrid")
        self.search = page.get_by_role("textbox", name="Search the names")
        self.settle()

    def row(self, name: str) -> Locator:
        """Return the line of that name."""
        return self.grid.locator("tbody tr").filter(has=self.page.locator("bdi", has_text=name).first)

    def names(self) -> list[str]:
        return self.grid.locator("tbody .tensornp-name-text").all_text_contents()

    def column(self, heading: str) -> list[str]:
        """Return what all lines that are seen say in a column."""
        at = self.grid.locator("thead th").all_text_contents().index(heading)
        return self.grid.locator(f"tbody td:nth-child({at + 1})").all_text_contents()

    def scan(self) -> None:
        """Scan all, and have the page hear what was found."""
        self.page.get_by_role("button", name="Scan").click()
        self.settle()
        self.set("progress", 0.5)
        end = time.monotonic() + 60
        while self.widget.progress >= 0:
            assert time.monotonic() < end, "the scan does not end"
            time.sleep(0.01)
        self.sync()
        self.settle()

    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.querySelector('bdi')?.textContent ?? ''")


MakeTree = Callable[..., Tree]


@pytest.fixture
def tree(blank: Page) -> MakeTree:
    return lambda obj, **options: Tree(blank, obj, **options)


@pytest.fixture
def stored(blank: Page) -> Iterator[Page]:
    """A page of a site, which may store something."""
    site = "http://blank.test/"
    blank.route(site, lambda route: route.fulfill(body="", content_type="text/html"))
    blank.goto(site)
    yield blank
    blank.evaluate("localStorage.clear()")
    blank.unroute(site)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)) for _ in range(12)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(4, 2, bias=False))


def test_it_is_a_tree_with_one_tab_stop_that_keys_open_and_close(tree: MakeTree) -> None:
    """Level, position and size of each line are told; left leads to what a line belongs to."""
    shown = tree(net())
    assert shown.grid.locator("[tabindex='0']").count() == 1
    shown.grid.locator("tbody tr").first.focus()
    assert shown.focused() == "{0..11}"
    row = shown.grid.locator("tbody tr").first
    expect(row).to_have_attribute("aria-expanded", "true")
    shown.press("ArrowDown", "ArrowDown")
    assert shown.focused() == "weight"
    row = shown.grid.locator("tbody tr").nth(2)
    for name, value in (("level", "3"), ("posinset", "1"), ("setsize", "2"), ("rowindex", "4"), ("expanded", "false")):
        expect(row).to_have_attribute(f"aria-{name}", value)
    shown.press("ArrowRight", "ArrowRight")
    assert shown.focused() == "0"
    expect(shown.grid.locator("tbody tr:focus")).to_have_attribute("title", re.compile(r"^0\.0\.weight\n"))
    expect(shown.grid).to_have_attribute("aria-rowcount", "24")
    shown.press("ArrowLeft")
    assert shown.focused() == "weight"
    shown.press(*["ArrowLeft"] * 5)
    assert shown.focused() == "{0..11}"
    assert shown.names() == ["{0..11}", "12.weight"]
    assert shown.grid.locator("[tabindex='0']").count() == 1


def test_a_long_list_is_walked_by_keys_and_never_whole_in_the_page(tree: MakeTree) -> None:
    """Page, Home and End go through all of it."""
    shown = tree({f"w{i}": torch.ones(1) for i in range(1000)})
    shown.search.fill("w")
    shown.settle()
    shown.press("ArrowDown", "End")
    assert shown.focused() == "w999"
    assert shown.grid.locator("tbody tr").count() == 20
    shown.press("PageUp", "ArrowUp")
    assert shown.focused() == "w978"
    shown.press("Home")
    assert shown.focused() == "w0"
    expect(shown.grid).to_have_attribute("aria-rowcount", "1001")


def test_the_search_finds_and_says_what_is_no_pattern(tree: MakeTree) -> None:
    """Slash leads to it, Escape takes it back, and while a key is held there is one question at a time."""
    shown = tree(net())
    shown.grid.locator("tbody tr").first.focus()
    shown.press("/")
    expect(shown.search).to_be_focused()
    shown.page.keyboard.type("*.0.weight")
    assert len(shown.sent()) == 1
    shown.settle()
    assert shown.names()[:3] == ["0.0.weight", "1.0.weight", "2.0.weight"]
    expect(shown.page.locator(".tensornp-code").first).to_have_text("w.find('*.0.weight')")
    expect(shown.page.get_by_text("12 of 85 weights · 192 elements · 768 bytes").first).to_be_visible()
    shown.search.fill("/(/")
    shown.settle()
    expect(shown.search).to_have_attribute("aria-invalid", "true")
    expect(shown.page.locator(".tensornp-problem").first).to_contain_text("is no regular expression")
    shown.search.fill("wieght")
    shown.settle()
    expect(shown.grid.get_by_text("no name fits 'wieght'; the closest is 'weight'")).to_be_visible()
    shown.press("Escape")
    assert shown.names()[0] == "{0..11}"


def test_columns_sort_and_filters_choose(tree: MakeTree) -> None:
    """The third press of a heading brings back the order of the model."""
    shown = tree(net())
    for expected in ("descending", "ascending", None):
        shown.page.get_by_role("button", name="bytes").click()
        shown.settle()
        head = shown.grid.locator("th", has_text="bytes")
        assert head.get_attribute("aria-sort") == expected
    assert shown.names()[0] == "{0..11}"
    shown.page.get_by_role("combobox", name="dtype").select_option("int64")
    shown.settle()
    assert set(shown.names()) == {f"{i}.1.num_batches_tracked" for i in range(12)}


def test_the_largest_norm_is_two_clicks_away(tree: MakeTree) -> None:
    """One scans, the other sorts; marks of one column stand under each other."""
    weights = {"small": torch.ones(2), "large": torch.full((2,), 7.0), "mid": torch.full((2,), 2.0)}
    shown = tree(weights)
    shown.scan()
    shown.page.get_by_role("button", name="norm", exact=True).click()
    shown.settle()
    expect(shown.grid.locator("tbody .tensornp-name-text")).to_have_text(["large", "mid", "small"])
    expect(shown.grid.locator("tbody tr").first).to_contain_text("9.9")
    lefts = shown.grid.locator(".tensornp-scale").evaluate_all("all => all.map((one) => one.getBoundingClientRect().x)")
    assert len(lefts) == 3 and len(set(lefts)) == 1


def test_a_second_scan_that_says_the_same_of_all_shows_what_it_has_read(tree: MakeTree) -> None:
    """At once: figures, and the column of what has moved; what was said of the first is gone."""
    weights = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0, 5.0])}
    shown = tree(weights)
    shown.scan()
    said, norms = shown.widget.scanned, shown.column("norm")
    shown.row("b").click()
    shown.settle()
    weights["b"].mul_(2)
    shown.widget.look_again()
    shown.sync()
    expect(shown.page.get_by_text("as of the scan: weights have been written").first).to_be_visible()
    shown.row("b").click()
    shown.settle()
    expect(shown.page.locator(".tensornp-weight")).to_contain_text("written or replaced since the scan")
    shown.scan()
    assert shown.widget.scanned == said
    assert (norms, shown.column("norm")) == (["2.24", "5.83"], ["2.24", "11.7"])
    assert shown.column("moved") == ["0%", "100%"]
    expect(shown.page.get_by_text("since the scan").filter(visible=True)).to_have_count(0)


def test_columns_stay_where_they_are_whatever_lines_are_seen(tree: MakeTree) -> None:
    """Two clicks at one place of the page sort by one column, and back; names, shapes and figures differ in length."""
    torch.manual_seed(0)
    sizes = [(3,), (5000, 3), (2, 3, 4, 5, 6)]
    shown = tree({f"part{'.long' * (i % 5)}.w{i}": torch.randn(sizes[i % 3]) * 10.0 ** (i - 9) for i in range(40)})
    shown.page.set_viewport_size({"width": 1000, "height": 800})
    shown.scan()
    heads = shown.grid.locator("thead th")
    lefts = "all => all.map((one) => one.getBoundingClientRect().x)"
    before = heads.evaluate_all(lefts)
    for name in ("norm", "std"):
        box = shown.grid.get_by_role("button", name=name, exact=True).bounding_box()
        assert box
        for expected in ("descending", "ascending", None):
            shown.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            shown.settle()
            assert heads.filter(has_text=name).get_attribute("aria-sort") == expected
            assert heads.evaluate_all(lefts) == before
    shown.grid.locator("tbody tr").first.focus()
    for key in ("End", "Home", "ArrowLeft", "PageDown"):
        shown.press(key)
        assert heads.evaluate_all(lefts) == before


def test_a_name_keeps_both_its_ends_beside_an_alarm(tree: MakeTree) -> None:
    """What gives way is the alarm, of which the number stays."""
    names = [f"encoder.layer.{i}.attention.value.weight" for i in range(3)]
    others = {"encoder.layer.0.attention.value.bias": torch.ones(2)}
    shown = tree({name: torch.tensor([1.0, torch.nan if "1" in name else 2.0]) for name in names} | others)
    page = shown.page
    page.set_viewport_size({"width": 480, "height": 800})
    shown.scan()
    expect(shown.grid.get_by_role("button", name="1 NaN in layer 1", exact=True)).to_be_visible()
    shown.search.fill("value")
    shown.settle()
    parts = shown.row("layer.1.attention").locator(".tensornp-part")
    first, last = parts.first.bounding_box(), parts.last.bounding_box()
    alarm, heads = shown.row("layer.1.attention").get_by_role("button"), shown.grid.locator("thead th").first
    seen, column = alarm.bounding_box(), heads.bounding_box()
    assert first and last and seen and column
    assert "".join(parts.all_text_contents()) == names[1]
    # It says all of its number, and is within the column with the end of the name before it.
    assert alarm.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert (
        first["width"] > 30 and last["x"] + last["width"] <= seen["x"] <= column["x"] + column["width"] - seen["width"]
    )
    assert parts.last.evaluate("node => node.scrollWidth <= node.clientWidth + 1")


def test_a_line_keeps_its_indentation_a_name_and_the_number_in_its_alarm(tree: MakeTree) -> None:
    """However long the names are that it stands below, and however little room there is."""
    weights = {
        f"embeddings.{part}_embeddings_of_the_model.weight": torch.arange(float(i + 2)) for i, part in enumerate("ab")
    }
    weights |= {f"encoder.layer.{i}.self.{key}.weight": torch.ones(2) for i in range(12) for key in ("query", "value")}
    weights["encoder.layer.10.self.value.weight"][1] = torch.nan
    shown = tree(weights)
    shown.page.set_viewport_size({"width": 330, "height": 800})
    shown.scan()
    lines = shown.grid.locator("tbody tr")
    for line in lines.all():
        level, name = int(line.get_attribute("aria-level") or 0), line.locator(".tensornp-name-text").bounding_box()
        cell = line.locator("td").first.bounding_box()
        assert name and cell
        assert name["x"] - cell["x"] == pytest.approx(8 + 8 * level, abs=1)
        assert name["width"] >= 30
    # Where it is said behind it.
    alarm = shown.grid.get_by_role("button", name="1 NaN in layer 10", exact=True)
    expect(alarm).to_have_attribute("title", "1 NaN in layer 10: show the values there (n)")
    column, seen = shown.grid.locator("th").first.bounding_box(), alarm.bounding_box()
    assert column and seen
    assert seen["x"] + seen["width"] <= column["x"] + column["width"]
    stays = alarm.locator(".tensornp-stays")
    assert stays.all_text_contents() == ["1 NaN"]
    last = stays.last.bounding_box()
    assert last and last["x"] + last["width"] <= seen["x"] + seen["width"]


@pytest.mark.parametrize(("width", "said"), [(420, ".grad NaN"), (1200, "7 NaN in .grad")])
def test_what_is_of_a_gradient_says_so_beside_a_weight_however_little_room_there_is(
    tree: MakeTree, monkeypatch: pytest.MonkeyPatch, width: int, said: str
) -> None:
    """Lest the weight, which is finite, be taken for what is not; and nothing of it is cut."""
    monkeypatch.setattr("tensornp.core.lowlevel.gradients.backward_runs_elsewhere", lambda: False)
    model = torch.nn.Linear(2, 4)
    model.weight.grad = torch.full((4, 2), torch.nan)
    model.weight.grad[0, 0] = 1
    shown = tree(model)
    shown.page.set_viewport_size({"width": width, "height": 800})
    shown.scan()
    alarm = shown.grid.get_by_role("button", name="7 NaN in .grad", exact=True)
    expect(alarm).to_have_text(said)
    assert alarm.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_no_two_lines_of_a_list_read_the_same(tree: MakeTree) -> None:
    """What all have in common gives way before anything that tells them apart."""
    keys = ("attention.self.query", "attention.self.key", "attention.output.dense", "intermediate.dense")
    names = [f"encoder.layer.{i}.{key}.weight" for i in (0, 1) for key in keys]
    shown = tree({name: torch.ones(2, 2) for name in names})
    shown.page.set_viewport_size({"width": 420, "height": 800})
    shown.search.fill("weight")
    shown.settle()
    is_whole = "all => all.filter((one) => one.scrollWidth <= one.clientWidth + 1).map((one) => one.textContent)"
    seen = [
        tuple(line.locator(".tensornp-part").evaluate_all(is_whole)) for line in shown.grid.locator("tbody tr").all()
    ]
    assert shown.names() == names
    assert len(set(seen)) == len(names), seen


def test_columns_are_chosen_and_kept(tree: MakeTree, stored: Page) -> None:
    """By keys too; Escape closes the choice. What is narrow leaves some out until they are chosen."""
    shown = tree({"a": torch.ones(2), "b": torch.zeros(3)})
    page, heads = shown.page, shown.grid.locator("thead th")
    page.set_viewport_size({"width": 1200, "height": 800})
    shown.scan()
    page.get_by_role("button", name="Columns").focus()
    shown.press("Enter", "Tab", "Space")
    every = ["elements", "share", "bytes", "values", "norm", "mean", "std", "max |x|", "zeros", "findings"]
    assert heads.all_text_contents() == ["name", *every]
    shown.press("Escape")
    expect(page.get_by_role("group", name="Columns")).to_be_hidden()
    expect(page.get_by_role("button", name="Columns")).to_be_focused()
    page.get_by_role("button", name="Columns").click()
    page.set_viewport_size({"width": 420, "height": 800})
    shown.settle()
    before = heads.all_text_contents()
    left = [name for name in every if name not in before]
    assert {"share", "zeros", "bytes", "findings"} >= set(left) > set()
    expect(page.get_by_text(f"no room for {len(left)} of these: what is chosen")).to_be_visible()
    # Nothing that nobody has chosen comes in its place.
    page.get_by_label("max |x|").uncheck()
    before.remove("max |x|")
    assert heads.all_text_contents() == before
    page.get_by_label("bytes").check()
    assert set(heads.all_text_contents()) == {*before, "bytes"}
    assert Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).violations_count == 0
    kept = page.evaluate("localStorage.getItem('tensornp.columns')")
    assert kept == '{"shape":false,"max |x|":false,"bytes":true}'


def test_names_stay_beside_figures_on_a_narrow_page(tree: MakeTree) -> None:
    """However far across one has scrolled; what the page is resized to decides which columns are shown."""
    shown = tree({f"layer.{'x' * 60}.{i}": torch.full((2,), float(i)) for i in range(3)} | {"b": torch.ones(2).half()})
    shown.page.set_viewport_size({"width": 300, "height": 800})
    shown.scan()
    shown.page.get_by_role("button", name="norm", exact=True).click()
    shown.settle()
    scroller = shown.page.locator(".tensornp-scroller:has(table.tensornp-tree)")
    heads = shown.grid.locator("thead th")
    # No number is cut, since names have the room that is left.
    assert heads.all_text_contents() == ["name", "dtype", "norm ▼"]
    assert scroller.evaluate("node => node.scrollWidth <= node.clientWidth")
    shown.page.get_by_role("button", name="Columns").click()
    for column in ("shape", "mean", "std", "max |x|"):
        shown.page.get_by_role("checkbox", name=column, exact=True).check()
    assert scroller.evaluate("node => { node.scrollLeft = 1000; return node.scrollLeft; }") > 0
    box = scroller.bounding_box()
    assert box
    for cell in shown.grid.locator("tbody tr > :first-child").all():
        name = cell.bounding_box()
        assert name
        assert (name["x"], name["width"] <= box["width"] / 2 + 20) == (box["x"], True)
    shown.grid.locator("tbody tr").first.focus()
    shown.page.set_viewport_size({"width": 1600, "height": 800})
    expect(heads.filter(has_text="zeros")).to_be_visible()
    expect(shown.grid.locator("tbody tr").first).to_be_focused()


def test_a_column_that_is_chosen_is_seen_and_pushes_nothing_out(tree: MakeTree) -> None:
    """Scrolled across to, and a shade at the edge says that there is more; what is short of room has no such edge."""
    shown = tree({f"layer.{i}.weight": torch.full((2,), float(i)) for i in range(3)})
    shown.page.set_viewport_size({"width": 340, "height": 800})
    shown.scan()
    heads, edges = (
        shown.grid.locator("thead th"),
        [shown.page.locator(f".tensornp-at-{side}") for side in ("left", "right")],
    )
    before = heads.all_text_contents()
    assert [edge.is_visible() for edge in edges] == [False, False]
    shown.page.get_by_role("button", name="Columns").click()
    shown.page.get_by_role("checkbox", name="findings").check()
    assert set(heads.all_text_contents()) == {*before, "findings"}
    shown.page.get_by_role("checkbox", name="zeros").check()
    expect(heads.filter(has_text="zeros")).to_be_in_viewport(ratio=1)
    assert [edge.is_visible() for edge in edges] == [True, True]
    bounds = shown.page.locator(".tensornp-beside .tensornp-scroller").bounding_box()
    seen, name = heads.filter(has_text="zeros").bounding_box(), heads.first.bounding_box()
    assert bounds and seen and name
    assert name["x"] + name["width"] <= seen["x"] + 1 <= bounds["x"] + bounds["width"] - seen["width"] + 2
    shown.search.fill("wieght")
    shown.settle()
    expect(shown.grid.get_by_text("no name fits")).to_be_in_viewport(ratio=1)


def test_a_column_that_is_chosen_comes_into_view_though_another_one_sorts(tree: MakeTree) -> None:
    """Beside it where there is room for both."""
    shown = tree({f"layer.{i}.weight": torch.full((2,), float(i)) for i in range(3)})
    shown.page.set_viewport_size({"width": 360, "height": 800})
    shown.scan()
    shown.page.get_by_role("button", name="norm", exact=True).click()
    shown.settle()
    shown.page.get_by_role("button", name="Columns").click()
    for column in ("findings", "bytes", "zeros"):
        shown.page.get_by_role("checkbox", name=column).check()
        chosen, name = (
            shown.grid.locator("th", has_text=column).bounding_box(),
            shown.grid.locator("th").first.bounding_box(),
        )
        assert chosen and name
        assert name["x"] + name["width"] - 1 <= chosen["x"] < 330


def test_all_figures_of_a_scan_have_room_where_a_notebook_is_1400_wide(tree: MakeTree) -> None:
    """With the share, a dtype that differs and long names, before notes that are empty of most weights."""
    layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(256, 4, 1024) for _ in range(12))
    layers[6:].to(torch.bfloat16)
    layers[7].linear1 = torch.nn.Linear(256, 2048)
    shown = tree(torch.nn.ModuleDict({"encoder": torch.nn.ModuleDict({"layers": layers})}))
    shown.page.set_viewport_size({"width": 968, "height": 800})
    shown.scan()
    every = ["shape", "elements", "share", "dtype", "values", "norm", "mean", "std", "max |x|", "zeros"]
    odd = shown.row("{6,8..11}").get_attribute("title") or ""
    assert odd.split("\n")[-1] == "all 12 are bfloat16, in {0..5} float32"
    heads = shown.grid.locator("thead th").all_text_contents()
    assert {*every} <= {*heads} <= {"name", *every, "bytes"}
    cut = shown.grid.locator("td.tensornp-right").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
    )
    assert cut == []


def test_what_was_chosen_elsewhere_takes_what_room_there_is_and_not_that_of_the_norm(
    tree: MakeTree, stored: Page
) -> None:
    """On a narrow page it waits, and the tree is not scrolled across."""
    stored.evaluate("""localStorage.setItem("tensornp.columns", '{"bytes": true, "share": true, "findings": true}')""")
    shown = tree({f"layer.{i}.weight": torch.full((2,), float(i)) for i in range(3)})
    heads = shown.grid.locator("thead th")
    shown.page.set_viewport_size({"width": 300, "height": 800})
    shown.scan()
    assert heads.all_text_contents() == ["name", "share", "norm"]
    shown.page.set_viewport_size({"width": 900, "height": 800})
    shown.settle()
    assert {"share", "bytes", "norm", "findings"} < set(heads.all_text_contents())


def test_what_tells_names_apart_is_not_left_out(tree: MakeTree) -> None:
    """Numbers, and the keys in which neighbours differ; what they have in common gives way first."""
    queries = [f"encoder.layer.{i}.attention.self.{key}.weight" for i in (3, 4) for key in ("query", "value")]
    shown = tree({name: torch.ones(2) for name in queries})
    shown.page.set_viewport_size({"width": 420, "height": 800})
    shown.search.fill("weight")
    shown.settle()
    assert shown.names() == queries
    is_whole = "all => all.filter((one) => one.scrollWidth <= one.clientWidth + 1).map((one) => one.textContent)"
    for i, name in enumerate(queries):
        parts = shown.grid.locator("tbody tr").nth(i).locator(".tensornp-part")
        whole = parts.evaluate_all(is_whole)
        assert {".3" if i < 2 else ".4", f".{name.split('.')[5]}"} <= set(whole), whole
        assert len(whole) < parts.count()


def test_a_dtype_that_differs_stays_after_a_scan_and_notes_name_all_that_differ(tree: MakeTree) -> None:
    """On a narrow page too; no word of a note is cut."""
    layers = torch.nn.ModuleList(torch.nn.ModuleDict({"linear1": torch.nn.Linear(4, 4)}) for _ in range(4))
    layers[2].to(torch.bfloat16)
    shown = tree(torch.nn.ModuleDict({"layers": layers}))
    shown.page.set_viewport_size({"width": 360, "height": 800})
    shown.scan()
    assert {"float32", "bfloat16"} <= set(shown.column("dtype"))
    shown.page.get_by_role("button", name="Columns").click()
    shown.page.get_by_role("checkbox", name="notes").check()
    note = shown.grid.locator("td.tensornp-notes", has_text="elsewhere")
    expect(note).to_have_text("linear1.weight, linear1.bias are bfloat16, elsewhere float32")
    assert note.evaluate("node => node.scrollWidth <= node.clientWidth")


@pytest.mark.parametrize("kept", ["{", "null", "[1]", '{"norm": "no", "constructor": 3}', '{"norm": false}'])
def test_what_else_is_kept_by_that_name_harms_nothing(tree: MakeTree, stored: Page, kept: str) -> None:
    """Only what was chosen is taken from it."""
    stored.evaluate("kept => localStorage.setItem('tensornp.columns', kept)", kept)
    shown = tree({"a": torch.ones(2), "b": torch.zeros(3)})
    shown.scan()
    expect(shown.page.get_by_role("button", name="max |x|")).to_be_visible()
    assert shown.page.get_by_role("button", name="norm", exact=True).count() == (kept != '{"norm": false}')


def test_a_weight_opens_below_and_closes(tree: MakeTree) -> None:
    """Facts, array, statistics; Escape leads back to its line."""
    shown = tree(net())
    shown.search.fill("12.weight")
    shown.settle()
    shown.press("ArrowDown", "Enter")
    card = shown.page.locator(".tensornp-weight")
    expect(card.locator("pre")).to_contain_text("array([[")
    expect(card.locator(".tensornp-facts")).to_contain_text("shape (2, 4)")
    card.get_by_role("tab", name="Statistics").click()
    shown.page.wait_for_function("window.sent.some((one) => one.type === 'stats')")
    request = shown.sent()[0]
    shown.num_answered += 1
    shown.widget._tell("stats", request)
    expect(card.locator("table").first).to_contain_text("elements")
    card.get_by_role("button", name="Bind array").focus()
    shown.press("Escape")
    expect(card).to_be_hidden()
    assert shown.focused() == "12.weight"


def test_a_weight_is_shown_in_tabs_beside_a_short_tree(tree: MakeTree) -> None:
    """By keys: Enter leads to it, arrows to a tab, of which nothing is asked before it is chosen, and Escape back."""
    shown = tree({f"w{i}": torch.ones(2, 3) * i for i in range(50)})
    card, rows = shown.page.locator(".tensornp-weight"), shown.grid.locator("tbody tr")
    shown.search.fill("w")
    shown.settle()
    shown.press("ArrowDown", *["ArrowDown"] * 29)
    assert (shown.focused(), shown.names()[0]) == ("w29", "w10")
    shown.press("Enter")
    expect(card.get_by_role("tab", name="Array", selected=True)).to_be_focused()
    assert "w29" in shown.names() and rows.count() == 8
    expect(card.locator("pre")).to_be_visible()
    shown.page.keyboard.press("ArrowRight")
    expect(card.get_by_role("tab", name="Statistics", selected=False)).to_be_focused()
    assert shown.sent() == []
    shown.page.keyboard.press("Enter")
    expect(card.get_by_role("tab", name="Statistics", selected=True)).to_be_focused()
    expect(card.locator("pre")).to_be_hidden()
    # Whoever answers it does so in a thread, which this page does not hear.
    assert [request["type"] for request in shown.sent()] == ["stats"]
    shown.num_answered += 1
    assert Axe().run(shown.page, options={"runOnly": ["wcag2a", "wcag2aa"]}).violations_count == 0
    shown.press("End")
    expect(card.get_by_role("tab", name="Values")).to_be_focused()
    shown.press("Escape")
    expect(card).to_be_hidden()
    assert (shown.focused(), shown.names()[0], rows.count()) == ("w29", "w10", 20)


@pytest.mark.parametrize("height", [1000, 500])
def test_what_a_click_opens_is_in_the_window(tree: MakeTree, height: int) -> None:
    """And the notebook does not move where it is there already."""
    shown = tree({f"w{i}": torch.ones(2, 3) * i for i in range(50)})
    shown.page.set_viewport_size({"width": 800, "height": height})
    shown.row("w3").click()
    shown.settle()
    expect(shown.page.locator(".tensornp-weight pre")).to_be_in_viewport(ratio=1)
    expect(shown.grid.locator("tr.tensornp-opened")).to_have_css("background-color", "rgba(128, 128, 128, 0.16)")
    if height == 1000:
        assert shown.page.evaluate("scrollY") == 0


@pytest.mark.parametrize("height", [800, 340])
def test_what_is_opened_and_its_line_stay_in_the_window_as_the_list_gets_short(tree: MakeTree, height: int) -> None:
    """Both of them where there is room; in a low window the line, with the head of what is opened."""
    shown = tree({f"w{i}": torch.ones(20, 3) * i for i in range(50)})
    shown.page.set_viewport_size({"width": 800, "height": height})
    shown.page.add_style_tag(content="#output { padding: 900px 0; }")
    for name in ("w0", "w5", "w15"):
        shown.row(name).first.scroll_into_view_if_needed()
        shown.row(name).first.click()
        shown.settle()
        expect(shown.grid.locator("tr.tensornp-opened")).to_be_in_viewport(ratio=1)
        expect(shown.page.locator(".tensornp-weight" if height == 800 else ".tensornp-panel-head")).to_be_in_viewport(
            ratio=1
        )
        shown.page.get_by_role("button", name="close", exact=True).click()
        shown.settle()


def test_no_number_of_an_array_and_no_word_of_a_scan_is_cut_in_a_narrow_page(tree: MakeTree) -> None:
    """A line of the array is as long as there is room, and what a scan has found wraps."""
    shown = tree({"a": torch.linspace(-1, 1, 1000).reshape(10, 100) / 3})
    shown.page.set_viewport_size({"width": 360, "height": 800})
    shown.row("a").click()
    shown.settle()
    fits = "node => node.scrollWidth <= node.clientWidth"
    assert shown.page.locator(".tensornp-weight pre").evaluate(fits)
    shown.set("scanned", "171 weights · 0 with findings, 24 with what may be on purpose")
    results = shown.page.locator(".tensornp-results")
    assert results.evaluate(fits)
    box = results.bounding_box()
    assert box and box["x"] + box["width"] <= 360


@pytest.mark.parametrize(("value", "goal", "says"), [(float("nan"), "nan", "NaN"), (float("inf"), "inf", "infinities")])
def test_what_is_not_finite_is_two_clicks_away(tree: MakeTree, value: float, goal: str, says: str) -> None:
    """One scans; the sentence, and the finding in the line, lead to the values at that place."""
    shown = tree({"a": torch.ones(2), "b": torch.tensor([1.0, value]), "c": torch.tensor([value])})
    shown.scan()
    expect(shown.page.locator(".tensornp-found .tensornp-alarm")).to_have_text(f"2 weights have {says}")
    asked = []
    answer = shown.widget._receive
    shown.widget._receive = lambda _, content, buffers: (asked.append(content), answer(_, content, buffers))
    shown.page.get_by_role("button", name=f"2 weights have {says}: b", exact=True).click()
    shown.settle()
    shown.row("c").get_by_role("button", name="NaN" if goal == "nan" else "+Inf", exact=True).click()
    shown.settle()
    expect(shown.page.get_by_role("tab", name="Values", selected=True)).to_be_visible()
    opened = [request for request in asked if request["type"] == "values" and request["open"]]
    assert [(request["weight"], request["goal"]) for request in opened] == [(1, goal), (2, goal)]


def test_a_figure_of_an_extreme_leads_to_its_element(tree: MakeTree) -> None:
    """By a click or a key."""
    shown = tree({"w": torch.tensor([0.0, 1.0, -7.0])} | {f"layers.{i}.b": torch.arange(3.0) for i in range(2)})
    shown.page.set_viewport_size({"width": 1200, "height": 800})
    shown.scan()
    asked = []
    answer = shown.widget._receive
    shown.widget._receive = lambda _, content, buffers: (asked.append(content), answer(_, content, buffers))
    figure = shown.grid.locator("td.tensornp-leads").first
    expect(figure).to_have_attribute("title", "Go to the element of the max |x| (m)")
    figure.click()
    shown.settle()
    # Whatever columns there is room for.
    shown.page.set_viewport_size({"width": 300, "height": 800})
    shown.row("w").focus()
    shown.press("m")
    shown.settle()
    opened = [request for request in asked if request["type"] == "values" and request["open"]]
    assert [request["goal"] for request in opened] == ["absmax", "absmax"]


def test_what_a_finding_leads_to_is_seen_in_the_tree_whatever_was_closed(tree: MakeTree) -> None:
    """The fold and its part open, and the line is there, marked; what else was open stays."""
    model = net()
    with torch.no_grad():
        model[3][0].weight[1, 2] = torch.nan
    shown = tree(model)
    shown.scan()
    opened = shown.grid.locator("tr.tensornp-opened")
    expect(opened).to_have_count(0)
    before = shown.grid.locator("tr[aria-expanded='true']").count()
    shown.page.get_by_role("button", name="1 weight has NaN: 3.0.weight", exact=True).click()
    shown.settle()
    expect(opened).to_have_count(1)
    expect(opened).to_have_attribute("title", re.compile(r"^3\.0\.weight\n"))
    expect(opened).to_be_in_viewport()
    shown.page.get_by_role("button", name="close", exact=True).click()
    shown.settle()
    assert shown.grid.locator("tr[aria-expanded='true']").count() > before


def test_findings_list_exactly_the_weights_that_have_them_and_can_be_left(tree: MakeTree) -> None:
    """By what says how many more there are; until then it is said what was not read."""
    weights = {
        **{f"c{i}": torch.full((2,), 3.0 + i) for i in range(30)},
        "a": torch.arange(3.0),
        "b": torch.arange(3.0),
    }
    shown = tree(weights)
    expect(shown.page.locator(".tensornp-found")).to_have_text("values not read yet; Scan looks for NaN")
    shown.scan()
    shown.search.fill("c1")
    shown.settle()
    found = shown.page.locator(".tensornp-finding", has_text="2 with the same values")
    found.get_by_role("button", name="and 1 more").click()
    shown.settle()
    assert shown.names() == ["a", "b"]
    expect(shown.search).to_have_value("")
    shown.row("a").click()
    shown.settle()
    expect(shown.page.locator(".tensornp-weight")).to_contain_text("the same values as 'b'")
    shown.page.get_by_role("button", name="only with the same values").click()
    shown.settle()
    assert len(shown.names()) > 2


def test_the_values_stay_where_another_weight_is_opened(tree: MakeTree) -> None:
    """And the focus where it is; its array is shown where that was chosen."""
    shown = tree({name: torch.arange(4.0) for name in "abc"})
    for name, tab in (("a", "Values"), ("b", ""), ("c", "Array"), ("a", "")):
        shown.row(name).click()
        shown.settle()
        chosen = "Values" if name in "ab" and not (name == "a" and not tab) else "Array"
        if tab:
            shown.page.get_by_role("tab", name=tab).click()
            shown.settle()
        expect(shown.page.get_by_role("tab", name=chosen, selected=True)).to_be_visible()
        if name == "b":
            expect(shown.row("b")).to_be_focused()
            opened = [one["weight"] for one in shown.page.evaluate("window.sent") if one.get("open")]
            assert opened == [0, 1]


def test_a_scan_answers_above_the_tree_and_in_one_line_of_it(tree: MakeTree) -> None:
    """The alarm is amber in both places, and no click on it is one on its line; what is no alarm is not."""
    model = net()
    with torch.no_grad():
        model[3][0].weight[1, 2] = torch.nan
    shown = tree(model, css=LAB_DARK)
    shown.scan()
    found, alarms = shown.page.locator(".tensornp-found"), shown.page.locator(".tensornp-weights .tensornp-alarm")
    assert found.evaluate("node => node.compareDocumentPosition(document.querySelector('.tensornp-tree'))") == 4
    expect(alarms).to_have_text(["1 weight has NaN", "1 NaN in 3"])
    for alarm in alarms.all():
        expect(alarm).to_have_css("background-color", "rgba(217, 119, 6, 0.28)")
    expect(found).to_contain_text("constant, as initialized")
    quiet = found.locator(".tensornp-finding").last
    expect(quiet).not_to_have_css("color", alarms.first.evaluate("node => getComputedStyle(node).color"))
    shown.grid.get_by_role("button", name="1 NaN in 3").click()
    shown.settle()
    expect(shown.page.locator(".tensornp-panel-name")).to_have_text("3.0.weight")
    assert Axe().run(shown.page, options={"runOnly": ["wcag2a", "wcag2aa"]}).violations_count == 0
    shown.page.get_by_role("button", name="1 weight has NaN: 3.0.weight").press("Enter")
    shown.settle()
    expect(shown.page.get_by_role("tab", name="Values", selected=True)).to_be_visible()


def test_what_a_bar_is_and_what_is_known_of_values_is_said(tree: MakeTree) -> None:
    """By a tooltip, which is never empty; and no button looks for a NaN where a scan has seen all values."""
    shown = tree(net())
    shown.scan()
    cells = shown.grid.locator("td:has(img), td:has(.tensornp-scale)")
    titles = cells.evaluate_all("all => all.map((one) => one.title)")
    assert len(titles) == 10 and all(titles)
    assert {title.split("\n")[-1].split(" ")[0] for title in titles} == {"the", "histogram"}
    assert shown.grid.locator("td[title='']").count() == 0
    shown.search.fill("0.0.weight")
    shown.settle()
    shown.grid.locator("tbody tr").first.click()
    shown.settle()
    asked: list[Any] = []
    shown.widget._navigator = SimpleNamespace(
        comm=True,
        anchor="",
        rest=lambda: None,
        close=lambda: None,
        show=lambda *given, **_: asked.append(given[0].absent),
    )
    shown.page.get_by_role("tab", name="Values").click()
    shown.settle()
    assert asked == [("nan", "inf")]


def test_classes_and_what_counts_are_grey(tree: MakeTree) -> None:
    """Behind the names that do not say it; what was learnt is not."""
    shown = tree(net(), css=LAB_DARK)
    ordinary = shown.row("running_mean").evaluate("node => getComputedStyle(node).color")
    said = shown.grid.locator(".tensornp-class-name")
    expect(said).to_have_text(["12 × Sequential", "12 × Linear", "12 × BatchNorm1d", "Linear"])
    expect(said.first).not_to_have_css("color", ordinary)
    expect(shown.row("num_batches_tracked").locator("td").nth(1)).not_to_have_css("color", ordinary)
    expect(shown.row("running_mean").locator("td").nth(1)).to_have_css("color", ordinary)


def test_a_heading_keeps_the_focus_and_a_row_the_tab_stop(tree: MakeTree) -> None:
    """Sorted twice by the keyboard; and after the slider was moved."""
    shown = tree({f"w{i}": torch.ones(i + 1) for i in range(60)})
    heading = shown.page.get_by_role("button", name="shape")
    heading.focus()
    shown.press("Enter", "Enter")
    expect(heading).to_be_focused()
    assert shown.names()[0] == "w0"
    slider = shown.page.locator("input.tensornp-down")
    slider.evaluate("(node) => { node.value = 40; node.dispatchEvent(new Event('input')); }")
    shown.settle()
    assert shown.names()[0] == "w40"
    assert shown.grid.locator("tr[tabindex='0']").count() == 1


def test_the_bar_is_as_long_as_what_is_seen_of_all_lines(tree: MakeTree) -> None:
    """Half of it for half of them; and there is none where all are seen."""
    shown = tree({f"w{i}": torch.ones(1) for i in range(40)})
    bar = shown.page.locator("input.tensornp-down")
    share = """node => parseFloat(getComputedStyle(node).getPropertyValue("--tensornp-thumb")) / node.clientHeight"""
    assert bar.evaluate(share) == pytest.approx(0.5, abs=0.01)
    shown.search.fill("w1 w2*".split()[1])
    shown.settle()
    expect(bar).to_be_hidden()
    shown.search.fill("")
    shown.settle()
    shown.grid.locator("tbody tr").first.click()
    shown.settle()
    assert bar.evaluate(share) == pytest.approx(0.2, abs=0.01)


def test_the_wheel_scrolls_the_lines_wherever_the_focus_is_and_the_page_at_their_ends(tree: MakeTree) -> None:
    """A notch is three lines; what is less adds up."""
    shown = tree({f"w{i}": torch.ones(1) for i in range(30)})
    page = shown.page
    page.add_style_tag(content="#output { padding: 300px 0 2000px; }")
    page.get_by_role("button", name="Columns").focus()
    shown.grid.hover()

    def roll(by: int) -> tuple[str, bool]:
        before = page.evaluate("scrollY")
        page.mouse.wheel(0, by)
        page.wait_for_timeout(150)
        shown.settle()
        return shown.names()[0], page.evaluate("scrollY") == before

    assert [roll(100), roll(20), roll(20)] == [("w3", True), ("w3", True), ("w4", True)]
    assert [roll(1000), roll(100)] == [("w10", True), ("w10", False)]


def test_only_the_name_that_was_asked_for_is_overwritten(tree: MakeTree) -> None:
    """Another text in the field takes the offer back."""
    shown = tree(net())
    shown.search.fill("12.weight")
    shown.settle()
    shown.press("ArrowDown", "Enter")
    field = shown.page.get_by_label("Name for the array")
    field.fill("taken")
    field.press("Enter")
    (request,) = shown.sent()
    shown.num_answered += 1
    answer = {"type": "error", "text": "taken is taken", "canOverwrite": True}
    shown.reply({**answer, "page": request["page"], "number": request["number"]})
    overwrite = shown.page.get_by_role("button", name="Overwrite")
    field.fill("other")
    expect(overwrite).to_have_count(0)
    field.press("Enter")
    (request,) = shown.sent()
    shown.num_answered += 1
    shown.reply({**answer, "page": request["page"], "number": request["number"]})
    overwrite.click()
    assert (shown.sent()[0]["name"], shown.sent()[0]["overwrite"]) == ("other", True)
    expect(field).to_be_focused()


def test_figures_of_another_weight_are_not_shown(tree: MakeTree) -> None:
    """They may come late."""
    shown = tree(net())
    shown.search.fill("weight")
    shown.settle()
    shown.press("ArrowDown", "Enter")
    shown.page.get_by_role("tab", name="Statistics").click()
    (request,) = shown.sent()
    shown.num_answered += 1
    shown.grid.locator("tbody tr").nth(3).click()
    shown.settle()
    shown.widget._tell("stats", request)
    expect(shown.page.locator(".tensornp-all-figures")).to_be_empty()


def test_a_heading_that_is_pressed_faster_than_the_kernel_answers_goes_on(tree: MakeTree) -> None:
    """From what was asked for last, and not from what is painted still."""
    shown = tree({"a": torch.ones(5), "b": torch.ones(9), "c": torch.ones(1)})
    button = shown.grid.get_by_role("button", name="bytes")
    for presses, names in ((2, ["c", "a", "b"]), (1, ["a", "b", "c"]), (4, ["b", "a", "c"])):
        button.evaluate("(node, presses) => { for (let i = 0; i < presses; i++) node.click(); }", presses)
        shown.settle()
        assert shown.names() == names


def test_a_path_breaks_after_its_parts_and_leaves_no_letter_alone(tree: MakeTree, tmp_path: Path) -> None:
    """In whichever width it has no room; whoever copies it has no more."""
    path = tmp_path / "run" / "checkpoint_after_so_many_epochs_of_the_first_run.safetensors"
    path.parent.mkdir()
    save_file({"w": torch.ones(2)}, path)
    shown = tree(path)
    shown.page.set_viewport_size({"width": 500, "height": 800})
    shown.row("w").click()
    shown.settle()
    where = shown.page.locator(".tensornp-fact", has_text="where").locator("bdi")
    expect(where).to_have_text(str(path))
    shortest = """node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      const lines = {};
      for (const { y, width } of range.getClientRects()) lines[Math.round(y)] = (lines[Math.round(y)] ?? 0) + width;
      return Math.min(...Object.values(lines));
    }"""
    for width in range(300, 500, 3):
        shown.page.set_viewport_size({"width": width, "height": 800})
        assert where.evaluate(shortest) > 14, width


def test_what_cannot_be_opened_says_so_and_can_be_closed(tree: MakeTree) -> None:
    """By mouse too."""
    shown = tree(net())

    shown.is_gone = True
    shown.search.fill("12.weight")
    shown.settle()
    shown.press("ArrowDown", "Enter")
    card = shown.page.locator(".tensornp-weight")
    expect(card).to_contain_text("12.weight is gone")
    card.get_by_role("button", name="close").click()
    expect(card).to_be_hidden()


def test_names_are_text_and_reorder_nothing(tree: MakeTree) -> None:
    """Whatever a file calls its weights."""
    hostile = "<img src=x onerror=window.hit=1>"
    shown = tree({hostile: torch.ones(1), "\u202eevil": torch.ones(1), "שלום": torch.ones(1)})
    assert shown.names() == [hostile, "\\u202eevil", "שלום"]
    shown.grid.locator("tbody tr").first.click()
    shown.settle()
    expect(shown.page.locator(".tensornp-panel-name")).to_have_text(hostile)
    assert shown.page.evaluate("window.hit") is None


def test_a_scan_is_told_and_can_be_stopped(tree: MakeTree) -> None:
    """While it runs the button stops it."""
    shown = tree(net())
    shown.page.get_by_role("button", name="Scan", exact=True).click()
    assert shown.sent()[0]["type"] == "scan"
    shown.num_answered += 1
    shown.set("progress", 0.25)
    expect(shown.page.get_by_role("progressbar")).to_be_visible()
    # After what may be the second half of a double click.
    shown.page.wait_for_timeout(600)
    shown.page.get_by_role("button", name="Stop").click()
    assert shown.sent()[0]["type"] == "end"
    shown.num_answered += 1
    shown.set("progress", -1)
    shown.set("scanned", "85 weights · 1 with findings")
    shown.settle()
    shown.page.get_by_role("button", name="85 weights · 1 with findings").click()
    assert shown.sent()[0]["sort"] == "findings"


def test_a_double_click_begins_a_scan_and_does_not_stop_it(tree: MakeTree) -> None:
    """Nor does what was pressed move as findings come."""
    model = net()
    with torch.no_grad():
        model[3][0].weight[1, 2] = torch.nan
    shown = tree(model)
    button = shown.page.get_by_role("button", name="Scan", exact=True)
    before = button.bounding_box()
    button.click()
    shown.num_answered += 1
    shown.set("progress", 0.25)
    shown.page.get_by_role("button", name="Stop").click()
    assert shown.sent() == []
    shown.set("progress", -1)
    shown.scan()
    expect(shown.page.get_by_role("button", name="1 weight has NaN: 3.0.weight")).to_be_visible()
    assert button.bounding_box() == before
    # One that has ended meanwhile begins none anew.
    button.dblclick()
    assert [one["type"] for one in shown.sent()] == ["scan"]


def test_what_is_sought_among_the_names_and_is_none_leads_to_what_holds_it(tree: MakeTree) -> None:
    """By a link, which chooses the state; the list of states offers what a scan has found."""
    weights = {f"w{i}": torch.ones(3).cumsum(0) for i in range(5)}
    weights["w3"][1] = torch.nan
    shown = tree(weights)
    state = shown.page.get_by_role("combobox", name="state")
    expect(state.locator("option")).to_have_text(["any state"])
    shown.scan()
    found = ["NaN or infinity", "with findings", "may be on purpose"]
    expect(state.locator("option")).to_have_text(["any state", *found])
    shown.search.fill("nan")
    shown.settle()
    shown.page.get_by_role("button", name="1 weight holds NaN").click()
    shown.settle()
    assert shown.names() == ["w3"]
    expect(shown.search).to_have_value("")
    expect(state).to_have_value("NaN")
    state.select_option("")
    shown.settle()
    assert len(shown.names()) == 5


@pytest.mark.parametrize("css", ["", LAB_DARK], ids=["light", "dark"])
def test_it_is_legible_and_accessible(tree: MakeTree, css: str) -> None:
    """With a card open."""
    shown = tree(net(), css=css)
    shown.search.fill("weight")
    shown.settle()
    shown.press("ArrowDown", "Enter")
    found = Axe().run(shown.page)
    assert found.response["violations"] == []
    assert shown.nameless_rows() == []
    texts = shown.page.locator(".tensornp-weights :is(td, th, button, pre, .tensornp-said, .tensornp-fact span)")
    assert illegible(texts.filter(visible=True)) == []


def test_what_changes_is_announced_once(tree: MakeTree) -> None:
    """How many lines are listed where that is another number, what is opened, what a scan has found."""
    shown = tree(net())
    announced = Announced(shown.page)
    shown.search.fill("weight")
    shown.settle()
    listed = "25 of 85 weights · 248 elements · 992 bytes"
    assert announced() == [listed]
    shown.search.fill("weigh")
    shown.settle()
    for _ in range(2):
        shown.page.get_by_role("button", name="bytes").click()
        shown.settle()
    assert announced() == []
    shown.row("0.0.weight").click()
    shown.settle()
    assert announced() == ["0.0.weight is shown"]
    shown.scan()
    (found,) = announced()
    assert found.startswith("25 weights · 0 with findings")
    shown.search.fill("/(/")
    shown.settle()
    shown.search.fill("weight")
    shown.settle()
    problem, again = announced()
    assert "is no regular expression" in problem
    assert again == listed


def test_without_a_kernel_it_says_so_and_leaves_nothing(tree: MakeTree) -> None:
    """And it is taken out without a trace."""
    shown = tree(net())
    shown.page.evaluate("window.lose()")
    expect(shown.page.get_by_text("the kernel of this card is gone").first).to_be_visible()
    expect(shown.search).to_be_disabled()
    before = shown.page.evaluate("window.count()")
    shown.page.evaluate("window.leave()")
    assert shown.page.evaluate("window.count()") < before
    expect(shown.grid).to_have_count(0)


def test_a_held_key_goes_on_while_answers_are_on_their_way(tree: MakeTree) -> None:
    """The line that is wanted may not be there yet: what is shown meanwhile does not take its place."""
    shown = tree({f"w{i:03}": torch.zeros(i + 1) for i in range(60)})
    shown.search.press("ArrowDown")
    shown.settle()
    for _ in range(45):
        shown.page.keyboard.press("ArrowDown")
        if shown.sent():
            # One answer, while the next key is pressed already.
            shown.page.keyboard.press("ArrowDown")
            shown.answer()
    shown.settle()
    at = int(shown.page.evaluate("document.activeElement.getAttribute('aria-rowindex')")) - 2
    assert at > 45
    assert shown.focused() == f"w{at:03}"


def test_the_headings_are_one_stop_of_the_tab_key_and_the_tree_is_another(tree: MakeTree) -> None:
    """Headings are reached from the first line too, upwards, and sort by Enter."""
    shown = tree({"b": torch.zeros(3), "a": torch.zeros(5), "c": torch.zeros(1)})
    every = "[...document.querySelectorAll('table [tabindex], table button')]"
    stops = shown.page.evaluate(f"{every}.filter((node) => node.tabIndex === 0).length")
    assert stops == 2
    columns, heading = (
        shown.page.get_by_role("button", name="Columns"),
        shown.page.get_by_role("button", name="elements"),
    )
    columns.focus()
    shown.press("Tab", "ArrowRight", "ArrowRight", "Enter")
    expect(heading).to_be_focused()
    assert (shown.names(), heading.get_attribute("title")) == (["a", "b", "c"], "Sort by elements")
    shown.press("Enter")
    assert (shown.names(), heading.get_attribute("title")) == (["c", "b", "a"], "Back to the model's order")
    shown.press("Enter")
    assert shown.names() == ["b", "a", "c"]
    shown.press("Tab")
    assert shown.focused() == "b"
    shown.press("Shift+Tab")
    expect(heading).to_be_focused()
    shown.search.press("ArrowDown")
    shown.settle()
    shown.press("ArrowUp")
    expect(shown.page.get_by_role("button", name="name", exact=True)).to_be_focused()
    shown.press("ArrowRight", "End", "Home", "ArrowLeft", "ArrowUp", "Enter")
    assert shown.names() == ["a", "b", "c"]
    shown.press("ArrowDown")
    assert shown.focused() == "a"
