"""Where a weight that is open stands: beside the tree where the page is wide enough, else below it."""

from __future__ import annotations

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.test_toggle_js import LAB_DARK
from browser.test_weights_js import MakeTree, Tree

FITS = "node => node.scrollWidth <= node.clientWidth"
WIDE, NARROW = 1500, 1000


@pytest.fixture
def tree(blank: Page) -> MakeTree:
    return lambda obj, **options: Tree(blank, obj, **options)


def resize(shown: Tree, width: int, height: int = 900) -> None:
    shown.page.set_viewport_size({"width": width, "height": height})
    shown.settle()


def box(node: Locator) -> dict[str, float]:
    found = node.bounding_box()
    assert found
    return {**found, "right": found["x"] + found["width"], "bottom": found["y"] + found["height"]}


def is_beside(shown: Tree) -> bool:
    """Return where the weight that is open stands, of which there are two places."""
    seen, of_tree = box(shown.page.locator(".tensornp-weight")), box(shown.grid)
    beside = seen["x"] >= of_tree["right"] and seen["y"] < of_tree["y"] + 30
    assert beside or (seen["x"] <= of_tree["x"] and seen["y"] >= of_tree["bottom"])
    return beside


def many() -> dict[str, torch.Tensor]:
    return {f"attention_output_w{i}": torch.linspace(-1, i, 600).reshape(20, 30) for i in range(50)}


@pytest.mark.parametrize(("width", "num_lines", "css"), [(WIDE, 20, ""), (NARROW, 8, LAB_DARK)], ids=["wide", "narrow"])
def test_a_weight_opens_beside_the_whole_tree_where_there_is_room(
    tree: MakeTree, width: int, num_lines: int, css: str
) -> None:
    """By Enter, which leads there; both fit, with fewer columns. Escape leads back, and all stands as before."""
    shown = tree(many(), css=css)
    resize(shown, width)
    shown.scan()
    page, rows, heads = shown.page, shown.grid.locator("tbody tr"), shown.grid.locator("thead th")
    before = heads.all_text_contents()
    shown.search.fill("w")
    shown.settle()
    shown.press(*["ArrowDown"] * 6, "Enter")
    assert is_beside(shown) == (num_lines == 20)
    expect(page.get_by_role("tab", name="Array")).to_be_focused()
    assert rows.count() == num_lines
    assert (len(heads.all()) < len(before)) == (num_lines == 20)
    for node in (".tensornp-scroller:has(.tensornp-tree)", ".tensornp-weight pre", "html"):
        assert page.locator(node).evaluate(FITS), node
    assert Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).violations_count == 0
    shown.press("Escape")
    assert (shown.focused(), rows.count()) == ("attention_output_w5", 20)
    assert heads.all_text_contents() == before


def test_what_is_open_moves_with_the_window_and_keeps_its_state_and_the_focus(tree: MakeTree) -> None:
    """In it, and in the tree; it is not asked for again, and the page is not scrolled."""
    shown = tree(many())
    resize(shown, WIDE)
    page, rows = shown.page, shown.grid.locator("tbody tr")
    page.add_style_tag(content="#output { padding: 300px 0 2000px; }")
    rows.nth(12).click()
    shown.settle()
    name = page.get_by_label("Name for the array")
    name.fill("kept")
    opened, scroll = page.evaluate("window.sent.length"), page.evaluate("scrollY")
    for width, num_lines in ((NARROW, 8), (WIDE, 20), (800, 8), (1920, 20)):
        resize(shown, width)
        assert (is_beside(shown), rows.count()) == (num_lines == 20, num_lines)
        expect(name).to_be_focused()
        expect(name).to_have_value("kept")
        expect(shown.grid.locator("tr.tensornp-opened")).to_have_count(1)
    assert {one["type"] for one in page.evaluate("window.sent")[opened:]} == {"lines"}
    assert page.evaluate("scrollY") == scroll
    rows.nth(3).focus()
    focused = shown.focused()
    for width in (NARROW, WIDE):
        resize(shown, width)
        assert shown.focused() == focused
