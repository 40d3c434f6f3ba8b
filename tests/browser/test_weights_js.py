"""The weights' ES module in a blank page: a real widget answers it, one request at a time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

import tensornp as tnp
from browser.contrast import illegible
from browser.module_page import TreePage, px_off
from browser.test_toggle_js import LAB_DARK
from tensornp.models.live.refind import released
from tensornp.widget.weights import WeightsWidget


class Tree(TreePage):
    """A tree of weights in a page, and the kernel's part in it."""

    def __init__(self, page: Page, obj: Any, *, css: str = "") -> None:
        self.explorer = tnp.weights(obj)
        tensors = {entry.code: entry.tensor for entry in self.explorer.values()}
        rows = [released(entry, tensors.__getitem__) for entry in self.explorer.values()]
        widget = WeightsWidget(rows, opened="w", anchor="a", binder=lambda *_: None, classes=self.explorer.classes)
        super().__init__(page, widget, "weights", css=css)

    def scan(self) -> None:
        """Scan all, and have the page hear what was found."""
        self.page.get_by_role("button", name=re.compile("^Read")).click()
        self.settle()
        self.set("progress", 0.5)
        end = time.monotonic() + 60
        while self.widget.progress >= 0:
            assert time.monotonic() < end, "the scan does not end"
            time.sleep(0.01)
        self.sync()
        self.settle()


MakeTree = Callable[..., Tree]


@pytest.fixture
def tree(blank: Page) -> MakeTree:
    return lambda obj, **options: Tree(blank, obj, **options)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)) for _ in range(12)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(4, 2, bias=False))


def test_it_is_a_tree_with_one_tab_stop_that_keys_open_and_close(tree: MakeTree) -> None:
    """Each row tells its level; left leads to the row above it, and only a branch without rows asks the kernel."""
    shown = tree(net())
    assert shown.grid.locator("[tabindex='0']").count() == 1
    shown.grid.locator("tbody tr").first.focus()
    assert shown.focused() == "{0..11}"
    expect(shown.grid.locator("tbody tr").first).to_have_attribute("aria-expanded", "true")
    shown.press("ArrowDown", "ArrowDown")
    assert shown.focused() == "weight"
    row = shown.grid.locator("tbody tr:focus")
    expect(row).to_have_attribute("aria-level", "3")
    expect(row).to_have_attribute("aria-expanded", "false")
    asked = shown.num_answered
    shown.press("ArrowRight")
    assert shown.num_answered == asked + 1
    shown.press("ArrowRight")
    assert shown.focused() == "0"
    expect(shown.grid.locator("tbody tr:focus")).to_have_attribute("title", re.compile(r"^0\.0\.weight\n"))
    expect(shown.grid.locator("tbody tr:focus")).to_have_attribute("aria-level", "4")
    assert shown.names()[3:6] == ["0", "1", "2"]
    shown.press("ArrowLeft")
    assert shown.focused() == "weight"
    shown.press(*["ArrowLeft"] * 5)
    assert shown.focused() == "{0..11}"
    assert shown.names() == ["{0..11}", "12.weight"]
    shown.press("ArrowRight")
    assert shown.names()[:3] == ["{0..11}", "0", "1"]
    assert shown.num_answered == asked + 1
    assert shown.grid.locator("[tabindex='0']").count() == 1


def test_a_long_list_is_cut_and_walked_by_keys(tree: MakeTree) -> None:
    """Page, Home and End go through its rows without a request; a link leads to a row that was cut."""
    shown = tree({f"w{i}": torch.full((1,), float("nan") if i == 998 else i) for i in range(1000)})
    assert len(shown.names()) == 500
    shown.fill(shown.search, "w")
    assert len(shown.names()) == 40
    expect(shown.grid.locator("tbody tr").last).to_contain_text("960 more; search for them")
    asked = shown.num_answered
    shown.press("ArrowDown", "End")
    assert shown.focused() == "w39"
    shown.press("PageUp", "ArrowUp")
    assert shown.focused() == "w28"
    shown.press("Home")
    assert shown.focused() == "w0"
    assert shown.num_answered == asked
    shown.scan()
    shown.click(shown.page.get_by_role("button", name="1 weight has NaN: w998", exact=True))
    expect(shown.page.locator(".tensornp-panel-name")).to_have_text("w998")
    expect(shown.search).to_have_value("")


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
    expect(shown.page.get_by_text("12 of 85 weights · 192 elements · 768 bytes").first).to_be_visible()
    shown.fill(shown.search, "/(/")
    expect(shown.search).to_have_attribute("aria-invalid", "true")
    expect(shown.page.locator(".tensornp-problem").first).to_contain_text("is not a regular expression")
    shown.fill(shown.search, "wieght")
    expect(shown.grid.get_by_text("no name fits 'wieght'; the closest is 'weight'")).to_be_visible()
    shown.press("Escape")
    assert shown.names()[0] == "{0..11}"


def test_the_largest_norm_is_two_clicks_away(tree: MakeTree) -> None:
    """One scans, the other sorts."""
    weights = {"small": torch.ones(2), "large": torch.full((2,), 7.0), "mid": torch.full((2,), 2.0)}
    shown = tree(weights)
    shown.scan()
    shown.click(shown.page.get_by_role("button", name="norm", exact=True))
    expect(shown.grid.locator("tbody .tensornp-name-text")).to_have_text(["large", "mid", "small"])
    expect(shown.grid.locator("tbody tr").first).to_contain_text("9.9")


def test_opening_a_row_moves_nothing_above_it(tree: MakeTree) -> None:
    """Neither a branch nor a panel, nor one that is open above it; the columns stay as well."""
    shown = tree(
        {f"w{i}.a": torch.linspace(-1, i, 600).reshape(20, 30) for i in range(1, 40, 2)} | {"b": torch.ones(9)}
    )
    shown.fill(shown.search, "a")
    shown.page.add_style_tag(content="#output { padding: 300px 0 2000px; }")
    rows = shown.grid.locator("tbody tr[data-id]")
    for at in (5, 9, 2):
        rows.nth(at).scroll_into_view_if_needed()
        before = rows.nth(at).bounding_box()
        shown.click(rows.nth(at))
        panel = shown.panel
        expect(panel).to_be_visible()
        assert rows.nth(at).evaluate(
            "node => node.nextElementSibling.contains(document.querySelector('.tensornp-panel'))"
        )
        after = rows.nth(at).bounding_box()
        assert before and after and after["y"] <= before["y"]
        assert (before["x"], before["width"]) == (after["x"], after["width"])


def test_a_weight_opens_below_and_closes(tree: MakeTree) -> None:
    """Facts, array, statistics; Escape leads back to its line."""
    shown = tree(net())
    shown.fill(shown.search, "12.weight")
    shown.press("ArrowDown", "Enter")
    card = shown.panel
    expect(card.locator("pre")).to_contain_text("array([[")
    expect(card.locator(".tensornp-facts")).to_contain_text("shape (2, 4)")
    card.get_by_role("button", name="Statistics").click()
    shown.page.wait_for_function("window.sent.some((one) => one.type === 'stats')")
    request = shown.sent()[0]
    shown.num_answered += 1
    shown.widget._answer("stats", request)
    expect(card.locator("table").first).to_contain_text("elements")
    card.get_by_role("button", name="Assign").focus()
    shown.press("Escape")
    expect(card).to_be_hidden()
    assert shown.focused() == "12.weight"


@pytest.mark.parametrize(("value", "goal", "says"), [(float("nan"), "nan", "NaN"), (float("inf"), "inf", "infinities")])
def test_what_is_not_finite_is_two_clicks_away(tree: MakeTree, value: float, goal: str, says: str) -> None:
    """One scans; the sentence, and the finding in the line, lead to the values at that place."""
    shown = tree({"a": torch.ones(2), "b": torch.tensor([1.0, value]), "c": torch.tensor([value])})
    shown.scan()
    expect(shown.page.locator(".tensornp-found .tensornp-alarm")).to_have_text(f"2 weights have {says}")
    asked = []
    answer = shown.widget._receive
    shown.widget._receive = lambda _, content, buffers: (asked.append(content), answer(_, content, buffers))
    shown.click(shown.page.get_by_role("button", name=f"2 weights have {says}: b", exact=True))
    shown.click(shown.row("c").get_by_role("button", name="NaN" if goal == "nan" else "+Inf", exact=True))
    expect(shown.page.get_by_role("button", name="Values")).to_have_attribute("aria-expanded", "true")
    opened = [request for request in asked if request["type"] == "values"]
    assert [(request["row"], request["goal"]) for request in opened] == [(1, goal), (2, goal)]
    assert px_off(shown.panel.get_by_role("grid")) < 1.5


def test_findings_list_exactly_the_weights_that_have_them_and_can_be_left(tree: MakeTree) -> None:
    """By what says how many more there are; until then it is said what was not read."""
    weights = {
        **{f"c{i}": torch.full((2,), 3.0 + i) for i in range(30)},
        "a": torch.arange(3.0),
        "b": torch.arange(3.0),
    }
    shown = tree(weights)
    expect(shown.page.locator(".tensornp-found")).to_have_text("values not read yet: reading them looks for NaN")
    shown.scan()
    shown.fill(shown.search, "c1")
    found = shown.page.locator(".tensornp-finding", has_text="2 with the same values")
    shown.click(found.get_by_role("button", name="and 1 more"))
    assert shown.names() == ["a", "b"]
    expect(shown.search).to_have_value("with the same values")
    shown.click(shown.row("a"))
    expect(shown.panel).to_contain_text("the same values as 'b'")
    shown.search.press("Escape")
    shown.settle()
    assert len(shown.names()) > 2


def test_rows_that_come_with_the_end_of_a_scan_do_not_take_the_focus_from_a_goal(tree: MakeTree) -> None:
    """A finding is there before the scan ends, and the row that leads to its values is made again meanwhile."""
    shown = tree({"w": torch.tensor([[1.0, torch.nan]]), "b": torch.zeros(3)})
    shown.scan()
    shown.page.get_by_role("button", name="1 weight has NaN: w", exact=True).click()
    assert [request["type"] for request in shown.sent()] == ["open"]
    shown.answer()
    shown.set("progress", 0.9)
    shown.set("progress", -1)
    assert [request["type"] for request in shown.sent()] == ["values", "rows"]
    shown.settle()
    expect(shown.page.locator("td.tensornp-nan")).to_be_focused()


def test_a_narrow_page_leaves_out_what_the_other_columns_tell(tree: MakeTree) -> None:
    """The name, the shape and the norm are always there; an alarm behind a name says where only if there is room."""
    model = net()
    with torch.no_grad():
        model[3][0].weight[1, 1] = torch.nan
    shown = tree(model)
    shown.scan()
    there: dict[int, list[str]] = {}
    alarm = shown.grid.locator("tbody tr .tensornp-alarm").first
    for width in (1400, 950, 800, 400):
        shown.page.set_viewport_size({"width": width, "height": 900})
        there[width] = shown.grid.locator("thead th:visible").all_inner_texts()
        assert alarm.inner_text() == ("1 NaN in 3" if width > 700 else "1 NaN")
    assert {"elements", "mean", "findings"} <= set(there[1400])
    assert {"max |x|", "findings"} <= set(there[950])
    assert not {"elements", "mean"} & set(there[950])
    assert {"findings", "bytes"} <= set(there[800])
    assert "max |x|" not in there[800]
    assert there[400] == ["name", "shape", "dtype", "norm"]


def test_names_are_text_and_reorder_nothing(tree: MakeTree) -> None:
    """Whatever a file calls its weights."""
    hostile = "<img src=x onerror=window.hit=1>"
    shown = tree({hostile: torch.ones(1), "\u202eevil": torch.ones(1), "שלום": torch.ones(1)})
    assert shown.names() == [hostile, "\\u202eevil", "שלום"]
    shown.click(shown.grid.locator("tbody tr").first)
    expect(shown.page.locator(".tensornp-panel-name")).to_have_text(hostile)
    assert shown.page.evaluate("window.hit") is None


def test_a_scan_is_told_and_can_be_stopped(tree: MakeTree) -> None:
    """While it runs the button stops it."""
    shown = tree(net())
    shown.page.get_by_role("button", name="Read values").click()
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
    shown.set("scanned", "85 weights · 1 finding")
    shown.settle()
    expect(shown.page.get_by_text("85 weights · 1 finding").last).to_be_visible()


def test_it_is_legible_and_accessible(tree: MakeTree) -> None:
    """With a card open, in the dark theme."""
    shown = tree(net(), css=LAB_DARK)
    shown.fill(shown.search, "weight")
    shown.press("ArrowDown", "Enter")
    found = Axe().run(shown.page)
    assert found.response["violations"] == []
    assert shown.nameless_rows() == []
    texts = shown.page.locator(".tensornp-weights :is(td, th, button, pre, .tensornp-said, .tensornp-fact span)")
    assert illegible(texts.filter(visible=True)) == []


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


def test_the_headings_are_one_stop_of_the_tab_key_and_the_tree_is_another(tree: MakeTree) -> None:
    """Headings are reached from the first line too, upwards, and sort by Enter."""
    shown = tree({"b": torch.zeros(3), "a": torch.zeros(5), "c": torch.zeros(1)})
    every = "[...document.querySelectorAll('table [tabindex], table button')]"
    stops = shown.page.evaluate(f"{every}.filter((node) => node.tabIndex === 0).length")
    assert stops == 2
    heading = shown.page.get_by_role("button", name="elements")
    shown.page.get_by_role("button", name="Read values").focus()
    shown.press("Tab", "ArrowRight", "ArrowRight", "Enter")
    expect(heading).to_be_focused()
    assert (shown.names(), heading.get_attribute("title")) == (["a", "b", "c"], "Sort by elements")
    head = shown.page.get_by_role("columnheader", name="elements")
    expect(head).to_have_attribute("aria-sort", "descending")
    shown.press("Enter")
    assert (shown.names(), heading.get_attribute("title")) == (["c", "b", "a"], "Back to the model's order")
    expect(head).to_have_attribute("aria-sort", "ascending")
    shown.press("Enter")
    assert head.get_attribute("aria-sort") is None
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
