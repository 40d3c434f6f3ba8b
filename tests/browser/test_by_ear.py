"""What is heard of each view: rows and columns by their names, pictures in words, and no fact twice."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.every_view import every_view, page_of_views
from browser.test_toggle_js import LAB_DARK


@pytest.fixture(scope="module")
def views() -> dict[str, str]:
    return every_view()


TABLE = """
- table:
  - rowgroup:
    - row:
      - columnheader "name"
      - columnheader "what"
      - columnheader "relation"
  - rowgroup:
    - row:
      - rowheader "weight"
      - cell "tensor"
      - cell "same object"
    - row:
      - rowheader "array"
      - cell "NumPy array"
      - cell "same elements"
    - row:
      - rowheader "row"
      - cell "tensor"
      - cell "overlapping"
"""
CARD = """
- region "view":
  - group: (2,) float32 cpu requires grad shared code
  - text: "array([1., 1.], dtype=float32)"
"""
OPEN = """
- group:
  - text: (2,) float32 cpu requires grad shared code
  - code: a = t.detach().numpy(); a.flags.writeable = False
  - text: /float32 · exact · 0 bytes copied/
"""


def test_axe_finds_nothing_against_any_view(page: Page, views: dict[str, str]) -> None:
    """With all folds open."""
    page.set_content(page_of_views(views, LAB_DARK))
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


def test_each_row_has_a_name_and_looks_as_the_rest_of_it(page: Page, views: dict[str, str]) -> None:
    """The first cell of each row is its heading, but for one that stands across all columns."""
    page.set_content(page_of_views(views))
    rows = page.locator("tbody tr:not(:has([colspan]))")
    assert rows.count() > 60
    looks = """(rows) => rows.map(({ cells: [first, ...others] }) => {
        const look = (cell) => ["fontWeight", "color", "fontSize"].map((name) => getComputedStyle(cell)[name]).join();
        const isAlike = others.every((cell) => cell.tagName === "TD" && look(cell) === look(first));
        return [first.tagName, first.scope, getComputedStyle(first).textAlign, isAlike];
    })"""
    assert {tuple(one) for one in rows.evaluate_all(looks)} == {("TH", "row", "left", True)}
    assert page.locator("tbody [role=row], tbody tr").count() >= page.get_by_role("rowheader").count() == rows.count()


def test_a_table_and_a_card_are_heard_in_order(page: Page, views: dict[str, str]) -> None:
    """What a value is of, whichever column it stands in; the sentence behind a badge with the code, once."""
    page.set_content(page_of_views({"view": views["aliases"]}))
    expect(page.get_by_role("region", name="view")).to_match_aria_snapshot(TABLE)
    page.set_content(page_of_views({"view": views["row"]}))
    view = page.get_by_role("region", name="view")
    expect(view).to_match_aria_snapshot(CARD)
    view.locator("summary").click()
    expect(view.get_by_role("group")).to_match_aria_snapshot(OPEN)
    assert view.aria_snapshot().count("Autograd tracks this leaf and .grad is empty") == 1


def test_nothing_is_heard_twice(page: Page, views: dict[str, str]) -> None:
    """A title says more than what it is behind, and what stands for a picture is not what is written under it."""
    page.set_content(page_of_views(views))
    titles = page.locator("[title]").evaluate_all("(all) => all.map((one) => [one.title, one.textContent])")
    assert titles
    assert [title for title, text in titles if title.strip(".") == text.strip()] == []
    alts = page.locator("img").evaluate_all("(all) => all.map((one) => [one.alt, one.closest('section').textContent])")
    assert [alt for alt, text in alts if " " in alt and alt in text] == []
