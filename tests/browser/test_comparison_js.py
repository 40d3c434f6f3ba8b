"""The comparison's ES module in a blank page: a real widget answers it, one request at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

import tensornp as tnp
from browser.contrast import illegible
from browser.module_page import ModulePage, px_off
from browser.test_toggle_js import ANCHOR, LAB_DARK
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.render.models.comparison import weights_comparison_document
from tensornp.widget.comparison import ComparisonTable


class Compared(ModulePage):
    """The printed table of two dictionaries in a page, and the part that docks into it."""

    def __init__(
        self,
        page: Page,
        *,
        css: str = "",
        same: dict[str, torch.Tensor] | None = None,
        one_moved: dict[str, torch.Tensor] | None = None,
    ) -> None:
        torch.manual_seed(0)
        before = {f"layers.{i}.weight": torch.randn(40, 30) for i in range(3)} | {
            "head": torch.randn(4, 6), "bias": torch.zeros(5)
        }  # fmt: skip
        after = {name: one + 0.01 for name, one in before.items()} | {
            name: one.clone() for name, one in ((same or {}) | (one_moved or {})).items()
        }
        before |= (same or {}) | (one_moved or {})
        for name in one_moved or {}:
            after[name][3, 4] += 1
        after["layers.1.weight"][39, 29] -= 5
        self.names: dict[str, Any] = {"before": before, "after": after}
        sides = [tnp.weights(self.names[one], expression=one) for one in self.names]
        found = tnp.compare(*sides)
        assert isinstance(found, WeightsComparison)
        widget = ComparisonTable(found, self.names, anchor=ANCHOR)
        widget._slow.clear()
        card = weights_comparison_document(found).html(ANCHOR)
        super().__init__(page, widget, "comparison", css=css, card=card, anchor=ANCHOR)
        self.answer_next()
        self.search = page.get_by_role("searchbox")
        self.pair = page.locator("section.tensornp-opened-pair")
        self.settle()

    def opener(self, name: str) -> Locator:
        return self.page.locator("button.tensornp-opener").filter(has_text=name)

    def listed(self) -> list[str]:
        return self.page.locator("button.tensornp-opener").all_text_contents()


@pytest.fixture
def compared(blank: Page) -> Iterator[Compared]:
    yield Compared(blank)


def test_repeated_layers_are_one_row_until_something_is_looked_for(compared: Compared) -> None:
    """Sorted, each weight is one; a third press brings the first order back, and a search finds words."""
    printed = compared.listed()
    assert printed[0] == "layers.{0..2}.weight × 3" and len(printed) == 3
    expect(compared.page.locator(".tensornp-found")).to_have_text("")
    heading = compared.page.get_by_role("columnheader", name="largest difference")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert (compared.listed()[0], len(compared.listed())) == ("layers.1.weight", 5)
    heading.get_by_role("button").click()
    assert compared.listed()[-1] == "layers.1.weight"
    heading.get_by_role("button").click()
    assert compared.listed() == printed
    compared.fill(compared.search, "2 weight")
    assert compared.listed() == ["layers.2.weight"]
    compared.fill(compared.search, "/^h.*d$/")
    assert compared.listed() == ["head"]
    compared.fill(compared.search, "laiers")
    expect(compared.page.locator(".tensornp-found")).to_contain_text("closest")
    compared.fill(compared.search, "")
    assert compared.listed() == printed


def test_a_row_opens_the_navigator_under_it(compared: Compared) -> None:
    """The columns stay where they are; Escape returns to the row."""
    columns = "[...document.querySelectorAll('.tensornp > table > thead th')].map((th) => th.getBoundingClientRect().x)"
    before = compared.page.evaluate(columns)
    compared.click(compared.opener("layers."))
    assert compared.page.evaluate(columns) == before
    expect(compared.pair).to_be_in_viewport(ratio=1)
    expect(compared.pair.locator(".tensornp-pair-name")).to_have_text("layers.1.weight")
    expect(compared.pair.locator(".tensornp-where")).to_contain_text("[39, 29]")
    assert px_off(compared.pair.get_by_role("grid")) < 1.5
    compared.press("Escape")
    expect(compared.pair).to_have_count(0)
    expect(compared.opener("layers.")).to_be_focused()
    expect(compared.opener("layers.")).to_have_attribute("aria-expanded", "false")


def test_one_row_is_open_at_a_time(compared: Compared) -> None:
    """Another row closes the first, and a second press its own."""
    compared.click(compared.opener("layers."))
    compared.click(compared.opener("head"))
    expect(compared.pair).to_have_count(1)
    expect(compared.pair.locator(".tensornp-pair-name")).to_have_text("head")
    compared.click(compared.opener("head"))
    expect(compared.pair).to_have_count(0)


def test_what_did_not_move_is_a_line_and_is_found(blank: Page) -> None:
    """A search finds what a line names, and opens it as any other."""
    compared = Compared(blank, same={f"still.{i}.weight": torch.ones(3, 4) for i in range(2)} | {"mask": torch.ones(2)})
    expect(blank.get_by_text("3 weights unchanged")).to_be_visible()
    compared.fill(compared.search, "still.1")
    assert compared.listed() == ["still.1.weight"]
    expect(blank.locator(".tensornp-found")).to_have_text("1 of 8")
    compared.click(compared.opener("still.1"))
    expect(compared.pair.locator(".tensornp-pair-name")).to_have_text("still.1.weight")
    expect(blank.get_by_role("cell", name="same bits")).to_be_visible()


def test_what_is_gone_says_so_and_a_kernel_that_is_gone_too(compared: Compared) -> None:
    """The static table comes back when the part leaves."""
    del compared.names["before"]["head"]
    compared.click(compared.opener("head"))
    expect(compared.pair.locator(".tensornp-error")).to_contain_text("before['head']")
    compared.page.evaluate("window.lose()")
    expect(compared.search).to_be_disabled()
    expect(compared.page.locator(".tensornp-found")).to_contain_text("kernel of this card is gone")
    compared.page.evaluate("window.close_model()")
    expect(compared.search).to_have_count(0)
    expect(compared.page.locator("tbody tr")).to_have_count(3)


def test_headings_and_lines_are_one_stop_each_from_which_arrows_go_on(compared: Compared) -> None:
    """Left and right along the headings, down to the lines, and up again; a line that was closed keeps the focus."""
    heads = compared.page.locator("thead button")
    compared.search.focus()
    compared.press("Tab", "ArrowRight", "End", "ArrowRight")
    expect(heads.last).to_be_focused()
    compared.press("Home", "ArrowLeft")
    expect(heads.first).to_be_focused()
    compared.press("Enter")
    assert compared.listed() == ["bias", "head", *(f"layers.{i}.weight" for i in range(3))]
    compared.press("ArrowDown", "ArrowDown", "ArrowDown")
    expect(compared.opener("layers.0")).to_be_focused()
    compared.press("Shift+Tab")
    expect(heads.first).to_be_focused()
    compared.press("Tab", "ArrowUp", "Enter")
    expect(compared.pair.locator(".tensornp-pair-name")).to_have_text("head")
    compared.press("Escape")
    expect(compared.opener("head")).to_be_focused()
    compared.press("Home", "ArrowUp")
    expect(heads.first).to_be_focused()


def test_it_is_legible_and_accessible(blank: Page) -> None:
    """With a pair open, in the dark theme."""
    compared = Compared(blank, css=LAB_DARK)
    compared.click(compared.opener("layers."))
    assert Axe().run(blank).response["violations"] == []
    assert compared.nameless_rows() == []
    texts = blank.locator(".tensornp :is(td, th, button, .tensornp-said, .tensornp-found, .tensornp-label)")
    assert illegible(texts.filter(visible=True)) == []
