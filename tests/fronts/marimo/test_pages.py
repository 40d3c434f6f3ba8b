"""The example in a page of marimo in Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fronts.marimo.notebooks import TESTS, served
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
EXAMPLE = TESTS.parent / "examples" / "6-marimo.py"
TIMEOUT_S = 120


def open_example(page: Page, address: str) -> list[str]:
    """Open the page, wait until its last live part is there, and return the errors of its scripts, which may come."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_default_timeout(TIMEOUT_S * 1000)
    expect.set_options(timeout=TIMEOUT_S * 1000)
    page.goto(address)
    expect(page.get_by_role("treegrid")).to_have_count(2)
    expect(page.get_by_role("radiogroup")).to_have_count(1)
    return errors


def try_all(page: Page) -> None:
    """Do in the page what one does in JupyterLab: a mode, the values, a weight and its values, a scan, a search."""
    page.get_by_role("radio", name="copy").check(force=True)
    expect(page.get_by_text("copy ").first).to_be_visible()
    page.get_by_role("button", name="Values", exact=True).click()
    page.get_by_role("grid").locator("[tabindex='0']").press("ArrowRight")
    expect(page.get_by_role("grid").locator("[tabindex='0']")).to_have_attribute("aria-colindex", "3")
    weights = page.locator(".tensornp-weights")
    weights.get_by_text("weight", exact=True).first.click()
    weights.get_by_role("button", name="Values", exact=True).click()
    expect(weights.get_by_role("grid")).to_be_visible()
    weights.get_by_role("button", name="Read values").click()
    expect(weights.get_by_text("0 findings").last).to_be_visible()
    calls = page.locator(".tensornp-calls")
    calls.get_by_label("Search the names").fill("1")
    expect(calls.get_by_text("1 of 4 calls").first).to_be_visible()


def test_the_example_runs(page: Page, tmp_path: Path) -> None:
    """Cards and live parts, of which none is shown beside its card, and what the slider moves is shown anew."""
    shutil.copy(EXAMPLE, tmp_path)
    with served(tmp_path / EXAMPLE.name, "run") as address:
        errors = open_example(page, address)
        try_all(page)
        expect(page.locator("marimo-anywidget").first).to_be_hidden()
        page.get_by_role("slider").press("End")
        expect(page.locator(".tensornp-calls").get_by_text("NaN").first).to_be_visible()
        # Those of the cells that have run again are gone, with what was opened in them.
        expect(page.get_by_role("radiogroup")).to_have_count(1)
        expect(page.locator(".tensornp-calls")).to_have_count(1)
        assert not errors
