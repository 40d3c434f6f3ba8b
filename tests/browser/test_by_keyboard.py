"""Every widget by keyboard alone: few stops of the Tab key, each of which is seen, and a way out of all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Page

from browser.test_calls_js import Calls, small
from browser.test_comparison_js import Compared
from browser.test_navigator_js import Navigator, counted
from browser.test_toggle_js import ANCHOR, Toggle
from browser.test_weights_js import Tree, net

MAX_STOPS = 30
STOP = """() => {
  const at = document.activeElement;
  const seen = (node) => {
    const { outlineStyle, outlineWidth, outlineColor, boxShadow } = getComputedStyle(node);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
  };
  // What is open under a line has tables of its own.
  const table = at.closest("table, .tensornp-opened-pair, .tensornp-panel");
  const number = [...document.querySelectorAll("table")].indexOf(table);
  return {
    name: at.getAttribute("aria-label") ?? at.textContent.trim().slice(0, 40),
    place: number < 0 ? "" : `${at.closest("thead") ? "headings" : "lines"} of table ${number}`,
    isSeen: [at, at.closest("label")].some((node) => node && seen(node)) && at.getBoundingClientRect().width > 0,
    isNotebook: at.matches("main"),
  };
}"""
ENDS = """() => {
  const end = (name) => Object.assign(document.createElement("button"), { id: name, textContent: name });
  document.body.prepend(end("begin"));
  document.body.append(end("end"));
}"""


def open_weight(page: Page) -> None:
    shown = Tree(page, net())
    shown.fill(shown.search, "weight")
    shown.press("ArrowDown", "Enter")


def open_pair(page: Page) -> None:
    compared = Compared(page)
    compared.click(compared.opener("layers."))


def navigator(page: Page) -> None:
    Navigator(page, counted(3, 100, 200))


def open_call(page: Page) -> None:
    shown = Calls(page, small())
    shown.click(shown.row("norm"))


def toggle(page: Page) -> None:
    shown = Toggle(page, torch.zeros(200), anchor=ANCHOR)
    shown.answer_next()
    shown.click(page.get_by_role("button", name="Values"))


WIDGETS = [open_weight, open_pair, navigator, open_call, toggle]
Make = Callable[[Page], None]


def stops(page: Page, key: str, ends: tuple[str, str]) -> list[dict[str, object]]:
    """Return what a key stops at between what stands before the widget and behind it."""
    page.locator(f"#{ends[0]}").focus()
    found = []
    for _ in range(MAX_STOPS + 1):
        page.keyboard.press(key)
        stop = page.evaluate(STOP)
        if stop["name"] == ends[1]:
            return [one for one in found if not one["isNotebook"]]
        found.append(stop)
    raise AssertionError(f"no way out: {found}")


@pytest.mark.parametrize("make", WIDGETS)
def test_the_tab_key_stops_at_what_is_seen_and_finds_a_way_out(blank: Page, make: Make) -> None:
    """In both directions; all headings of a table are one stop, and all of its lines."""
    make(blank)
    blank.evaluate(ENDS)
    on, back = stops(blank, "Tab", ("begin", "end")), stops(blank, "Shift+Tab", ("end", "begin"))
    assert len(on) > 2
    assert [one for one in on if not one["isSeen"]] == []
    assert [one["name"] for one in on] == [one["name"] for one in reversed(back)]
    places = [one["place"] for one in on if one["place"]]
    assert len(places) == len(set(places)), places


HEARD = """() => {
  window.escaped = false;
  document.querySelector("main").addEventListener("keydown", ({ key, defaultPrevented }) => {
    if (key === "Escape" && !defaultPrevented) window.escaped = true;
  });
}"""
IS_OUT = "window.escaped || !document.activeElement.closest('#output > *, .tensornp')"


@pytest.mark.parametrize("make", [open_weight, open_call])
def test_escape_leads_back_to_the_notebook_from_each_stop(blank: Page, make: Make) -> None:
    """In a few presses: what is open closes, the tree or the line comes next, and then the notebook has the key."""
    make(blank)
    focusable = blank.locator(
        "main :is(button, input, select, summary, [tabindex]):not([tabindex='-1'], :disabled):visible"
    )
    num_stops = focusable.count()
    for i in range(0, num_stops, 2):
        # Made anew where the last Escape has closed something.
        if focusable.count() != num_stops:
            make(blank)
        blank.evaluate(HEARD)
        focusable.nth(i).focus()
        for _ in range(3):
            if blank.evaluate(IS_OUT):
                break
            blank.keyboard.press("Escape")
        assert blank.evaluate(IS_OUT), i
