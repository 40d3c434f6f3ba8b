"""A page of 320 pixels, as a wide one is that is magnified four times, and one whose reader wants nothing to move."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from browser.every_view import every_view, page_of_views
from browser.test_by_keyboard import WIDGETS, Make
from tensornp.widget.dock import STATIC

WIDTH = 320
NAMED = ("container", "module", "models", "pass", "passes", "tensors")
OVER = "document.documentElement.scrollWidth - innerWidth"


def test_no_view_makes_a_narrow_page_scroll_sideways(blank: Page) -> None:
    """What is wider scrolls in its own place, and tables of names have nothing that is wider."""
    blank.set_viewport_size({"width": WIDTH, "height": 800})
    for name, html in every_view().items():
        blank.set_content(page_of_views({name: html}))
        assert blank.evaluate(OVER) <= 0, name
        for node in blank.locator(".tensornp").all():
            style = node.evaluate("(one) => [one.scrollWidth <= one.clientWidth + 1, getComputedStyle(one).overflowX]")
            assert style[0] or (style[1] == "auto" and name not in NAMED), name


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
