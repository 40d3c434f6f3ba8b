"""The navigator in JupyterLab and Notebook 7: from the card's bar to a NaN, and what becomes of it there."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server

LOAD = "%load_ext tensornp\nimport torch"
SHOW_W = """torch.manual_seed(0)
w = torch.randn(6, 300, 400) / 20
w[2, 250, 350] = torch.nan
w"""


def where(cell: Locator) -> Locator:
    """What is said of the element that has the focus."""
    return cell.locator(".tensornp-where")


def open_values(cell: Locator) -> Locator:
    """Open the navigator of a cell's toggle, and return its grid."""
    cell.get_by_role("button", name="Values").click()
    grid = cell.get_by_role("grid")
    expect(grid.locator("td[tabindex='0']")).to_be_visible()
    return grid


def test_a_nan_is_found_in_two_clicks_and_keys_go_on_from_there(page: Page, server: Server) -> None:
    """Letters and arrows are no commands of the notebook, and Escape makes them so again."""
    server.write("found.ipynb", [LOAD, SHOW_W])
    notebook = Notebook(page, server, "found.ipynb", app="notebooks")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    grid = open_values(cell)
    cell.get_by_role("button", name="next NaN").click()
    expect(where(cell)).to_have_text("[2, 250, 350]  nan  float32")
    grid.locator("td[tabindex='0']").click()
    for key in ("ArrowDown", "ArrowRight", "b", "x", "a", "m", "Control+End"):
        page.keyboard.press(key)
    expect(where(cell)).to_have_text(re.compile(r"^\[2, 299, 399\] "))
    expect(grid.locator("td[tabindex='0']")).to_be_focused()
    page.keyboard.press("n")
    expect(where(cell)).to_have_text(re.compile(r"^\[2, 250, 350\]  nan"))
    page.keyboard.press("g")
    page.keyboard.type("0, 3, 4")
    page.keyboard.press("Enter")
    expect(where(cell)).to_have_text(re.compile(r"^\[0, 3, 4\] "))
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(3)
    saved = notebook.save().read_text()
    assert "vnd.jupyter.widget" not in saved and "tensornp-values" not in saved
    cell.get_by_role("button", name="Values").click()
    expect(grid).to_have_count(0)
