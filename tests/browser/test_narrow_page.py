"""A page of 320 pixels, as a wide one is that is magnified four times, and one whose reader wants nothing to move."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from browser.every_view import every_view, page_of_views
from browser.test_by_keyboard import WIDGETS, Make
from tensornp.widget.dock import STATIC

WIDTH = 320
OVER = "document.documentElement.scrollWidth - innerWidth"


def test_no_view_makes_a_narrow_page_scroll_sideways(blank: Page) -> None:
    """What is wider scrolls in its own place, by keys too; nothing is cut without a sign."""
    blank.set_viewport_size({"width": WIDTH, "height": 800})
    for name, html in every_view().items():
        blank.set_content(page_of_views({name: html}))
        assert blank.evaluate(OVER) <= 0, name
        for node in blank.locator(".tensornp").all():
            style = node.evaluate("(one) => [one.scrollWidth <= one.clientWidth + 1, getComputedStyle(one).overflowX]")
            assert style[0] or style[1] == "auto", name


@pytest.mark.parametrize("name", ["container", "module", "models", "pass", "passes", "tensors"])
def test_a_table_of_names_has_room_in_a_narrow_page(page: Page, name: str) -> None:
    """A name has a line of its own, badges and figures break, and nobody scrolls for what differs."""
    page.set_viewport_size({"width": WIDTH, "height": 800})
    page.set_content(page_of_views({name: every_view()[name]}))
    for node in page.locator(".tensornp").all():
        assert node.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 1


@pytest.mark.parametrize("make", WIDGETS)
def test_no_widget_makes_a_narrow_page_scroll_sideways(blank: Page, make: Make) -> None:
    """Each control has room."""
    blank.set_viewport_size({"width": WIDTH, "height": 800})
    make(blank)
    assert blank.evaluate(OVER) <= 0
    controls = blank.locator(":is(button, input, select):visible:not(table *, .tensornp-scroller *)")
    rights = controls.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().right)")
    assert max(rights) <= WIDTH


def test_nothing_moves_by_itself():
    """So whoever asks for reduced motion has it."""
    for path in (*STATIC.rglob("*.css"), *STATIC.rglob("*.js")):
        source = path.read_text(encoding="utf-8")
        assert not [word for word in ("transition", "animation", "@keyframes", "smooth") if word in source], path.name
