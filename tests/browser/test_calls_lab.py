"""`%%follow` in JupyterLab: a live tree in the card, its verdict a link, and what becomes of it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server

LOAD = """%load_ext tensornp
import math, pickle, torch
class Mask(torch.nn.Module):
    def forward(self, x):
        return (x - math.inf).softmax(-1)
class Block(torch.nn.Module):
    def __init__(self, is_broken):
        super().__init__()
        self.lin, self.act = torch.nn.Linear(8, 8), Mask() if is_broken else torch.nn.Tanh()
    def forward(self, x):
        return self.act(self.lin(x))
model = torch.nn.Sequential(*[Block(i == 7) for i in range(12)])"""
FOLLOW = "%%follow -o run model\nmodel(torch.ones(2, 8)).sum().backward()"


def tree(cell: Locator) -> Locator:
    """The tree of a cell, once its lines are there."""
    found = cell.get_by_role("treegrid")
    expect(found.locator("tbody tr[tabindex='0']")).to_be_visible()
    return found


def ran(lab: Page, server: Server, name: str, *cells: str, dark: bool = False) -> Notebook:
    """Return a notebook of which all cells have run."""
    server.write(name, [LOAD, *cells])
    notebook = Notebook(lab, server, name, dark=dark)
    for i in range(len(cells) + 1):
        notebook.run_cell(i)
    return notebook


def test_the_verdict_leads_to_its_row_by_keys_alone(lab: Page, server: Server) -> None:
    """The static tree gives its place to the live one; no key is a command of the notebook."""
    notebook = ran(lab, server, "nan.ipynb", FOLLOW)
    cell = notebook.cell(1)
    grid = tree(cell)
    expect(cell.locator(".tensornp-static")).to_be_hidden()
    link = cell.get_by_role("button", name="7.act (Mask)", exact=True)
    link.focus()
    lab.keyboard.press("Enter")
    panel = cell.locator(".tensornp-panel")
    expect(panel.locator(".tensornp-panel-name")).to_have_text("7.act (Mask)")
    expect(panel).to_contain_text("return self.act(self.lin(x))")
    row = grid.locator("tr.tensornp-opened")
    expect(row).to_be_focused()
    expect(row).to_contain_text("first NaN")
    for key in ("d", "d", "x", "ArrowUp", "Enter"):
        lab.keyboard.press(key)
    expect(panel.locator(".tensornp-panel-name")).to_have_text("7.lin (Linear)")
    lab.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    lab.keyboard.press("/")
    expect(cell.get_by_label("Search the names")).to_be_focused()
    lab.keyboard.type("{0..3}.lin")
    expect(grid.locator("tbody tr")).to_have_count(4)
    assert notebook.panel.locator(".jp-CodeCell").count() == 2
