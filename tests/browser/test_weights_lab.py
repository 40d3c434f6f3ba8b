"""`%weights` in JupyterLab: a tree that takes the place of its table, and what becomes of it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server

LOAD = """%load_ext tensornp
import torch
torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.LayerNorm(40)) for _ in range(12)]
model = torch.nn.Sequential(*blocks)
with torch.no_grad():
    model[3][0].weight[17, 5] = torch.nan
torch.save(model.state_dict(), "model.pt")"""


def tree(cell: Locator) -> Locator:
    """The tree of a cell, once its lines are there."""
    found = cell.get_by_role("treegrid")
    expect(found.locator("tbody tr[tabindex='0']")).to_be_visible()
    return found


def test_two_clicks_lead_to_a_nan_without_scrolling(lab: Page, server: Server) -> None:
    """In a narrow window; the element has the focus, and Escape leads back."""
    lab.set_viewport_size({"width": 800, "height": 900})
    server.write("nan.ipynb", [LOAD, "%weights model"])
    notebook = Notebook(lab, server, "nan.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    tree(cell)
    cell.get_by_role("button", name="Read values").click()
    cell.get_by_role("button", name="1 weight has NaN: 3.0.weight").click()
    element = cell.get_by_role("grid").locator("td.tensornp-nan")
    expect(element).to_be_focused()
    # A part of a pixel may be cut off.
    expect(element).to_be_in_viewport(ratio=0.99)
    expect(cell.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")
    lab.keyboard.press("Escape")
    expect(cell.locator(".tensornp-panel")).to_be_hidden()
    assert lab.evaluate("document.activeElement.closest('[role=treegrid]') !== null")


def test_a_cell_that_runs_again_has_one_tree_and_a_gone_model_says_so(lab: Page, server: Server) -> None:
    """What is shown keeps no model alive."""
    server.write("again.ipynb", [LOAD, "%weights model", "del model, blocks"])
    notebook = Notebook(lab, server, "again.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    grid = tree(cell)
    expect(cell.get_by_role("treegrid")).to_have_count(1)
    notebook.run_cell(2)
    cell.get_by_label("Search the names").fill("0.0.bias")
    expect(grid.locator("tbody tr")).to_have_count(1)
    grid.locator("tbody tr").first.click()
    expect(cell.locator(".tensornp-panel")).to_contain_text("reaches no weight any more")
