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


def test_the_nan_of_a_file_is_found_by_keys_alone(lab: Page, server: Server) -> None:
    """Scan, sort, open, statistics, values; no key is a command of the notebook, and nothing else was read."""
    server.write("file.ipynb", [LOAD, "%weights model.pt"])
    notebook = Notebook(lab, server, "file.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    grid = tree(cell)
    expect(cell.locator(".tensornp-static")).to_be_hidden()
    cell.get_by_role("button", name="Scan").click()
    expect(cell.get_by_role("button", name="48 weights · 1 finding")).to_be_visible()
    cell.get_by_label("Search the names").focus()
    lab.keyboard.type("*.0.weight")
    expect(grid.locator("tbody tr")).to_have_count(12)
    cell.get_by_role("button", name="48 weights · 1 finding").click()
    expect(grid.locator("tbody tr").first).to_contain_text("1 NaN")
    cell.get_by_label("Search the names").focus()
    for key in ("ArrowDown", "d", "d", "x", "Enter"):
        lab.keyboard.press(key)
    card = cell.locator(".tensornp-weight")
    expect(card).to_contain_text("3.0.weight")
    expect(card.locator("pre")).to_contain_text("array([[")
    card.get_by_role("tab", name="Statistics").press("Enter")
    expect(card).to_contain_text("[17, 5]")
    card.get_by_role("tab", name="Values").press("Enter")
    expect(card.get_by_role("grid")).to_be_visible()
    card.get_by_role("button", name="next NaN").press("Enter")
    expect(card.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")
    card.get_by_label("Name for the array").fill("bound")
    lab.keyboard.press("Enter")
    expect(card).to_contain_text("bound to bound: tnp.weights('model.pt')['3.0.weight'].to_numpy()")
    assert notebook.panel.locator(".jp-CodeCell").count() == 2


def test_two_clicks_lead_to_a_nan_without_scrolling(lab: Page, server: Server) -> None:
    """In a narrow window; the element has the focus, and Escape leads back."""
    lab.set_viewport_size({"width": 800, "height": 900})
    server.write("nan.ipynb", [LOAD, "%weights model"])
    notebook = Notebook(lab, server, "nan.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    tree(cell)
    cell.get_by_role("button", name="Scan").click()
    cell.get_by_role("button", name="1 weight has NaN: 3.0.weight").click()
    element = cell.get_by_role("grid").locator("td.tensornp-nan")
    expect(element).to_be_focused()
    expect(element).to_be_in_viewport(ratio=1)
    expect(cell.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")
    lab.keyboard.press("Escape")
    expect(cell.locator(".tensornp-weight")).to_be_hidden()
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
    expect(grid.locator("tbody tr")).to_have_count(2)
    grid.locator("tbody tr").first.click()
    expect(cell.locator(".tensornp-weight")).to_contain_text("reaches no weight any more; show them again")
