"""`%tensordiff` of two models in JupyterLab: what a step has changed, in one line and one click."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from browser.lab import Notebook, Server

LOAD = """%load_ext tensornp
import torch
torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.LayerNorm(40), torch.nn.Linear(40, 30))
          for _ in range(6)]
model = torch.nn.Sequential(*blocks)
before = {name: weight.clone() for name, weight in model.state_dict().items()}
model(torch.randn(8, 30)).square().mean().backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
with torch.no_grad():
    model[4][2].weight[20, 30] += 3"""


def test_a_step_is_seen_in_one_line_and_one_click(lab: Page, server: Server) -> None:
    """What moved most stands first, a click shows both sides there, and a cell that runs again has one table."""
    server.write("diff.ipynb", [LOAD, "%tensordiff before model", "del before"])
    notebook = Notebook(lab, server, "diff.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    expect(cell.get_by_role("searchbox")).to_be_visible()
    first = cell.locator("tbody tr").first
    expect(first).to_contain_text("{0..5}.2.weight × 6")
    first.get_by_role("button").click()
    pair = cell.locator(".tensornp-opened-pair")
    expect(pair.get_by_role("group", name="Side").get_by_role("button")).to_have_text(["before", "after", "Δ"])
    current = cell.locator("td.tensornp-current")
    expect(current).to_be_focused()
    expect(current).to_have_text(re.compile(r"3\.00\d"))
    # No key is a command of the notebook.
    for key in ("ArrowUp", "ArrowDown", "n", "x"):
        lab.keyboard.press(key)
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(3)
    lab.keyboard.press("Escape")
    expect(pair).to_have_count(0)
    notebook.run_cell(1)
    expect(cell.get_by_role("searchbox")).to_have_count(1)
    notebook.run_cell(2)
    cell.locator("tbody tr").first.get_by_role("button").click()
    expect(pair.locator(".tensornp-error")).to_contain_text("before")
    assert "vnd.jupyter.widget" not in notebook.save().read_text()
