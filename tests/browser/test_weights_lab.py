"""`%weights` in JupyterLab: a tree that takes the place of its table, and what becomes of it."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.contrast import illegible
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
    expect(cell.get_by_role("button", name="48 weights · 1 with findings")).to_be_visible()
    cell.get_by_label("Search the names").focus()
    lab.keyboard.type("*.0.weight")
    expect(grid.locator("tbody tr")).to_have_count(12)
    cell.get_by_role("button", name="48 weights · 1 with findings").click()
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
    expect(card).to_contain_text("bound: bound = tnp.weights('model.pt')['3.0.weight'].to_numpy()")
    assert notebook.panel.locator(".jp-CodeCell").count() == 2


def is_beside(cell: Locator) -> bool:
    """Return whether the weight that is open stands at the right of the tree."""
    tree_box, seen = cell.get_by_role("treegrid").bounding_box(), cell.locator(".tensornp-weight").bounding_box()
    assert tree_box and seen
    return seen["x"] >= tree_box["x"] + tree_box["width"]


@pytest.mark.parametrize("width", [1920, 1400, 800])
def test_two_clicks_lead_to_a_nan_without_scrolling(lab: Page, server: Server, width: int) -> None:
    """In a window of any width, beside the tree in the widest; the element has the focus, and Escape leads back."""
    lab.set_viewport_size({"width": width, "height": 900})
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
    assert is_beside(cell) == (width == 1920)
    lab.keyboard.press("Escape")
    expect(cell.locator(".tensornp-weight")).to_be_hidden()
    assert lab.evaluate("document.activeElement.closest('[role=treegrid]') !== null")


def test_what_is_open_follows_the_window_and_stays_in_view_beside_the_tree(lab: Page, server: Server) -> None:
    """As the notebook scrolls; narrower and wide again, the same element has the focus, and nothing is read anew."""
    lab.set_viewport_size({"width": 1920, "height": 900})
    server.write("wide.ipynb", [f"{LOAD}\nflat = {{f'w{{i}}': torch.ones(2, 3) for i in range(50)}}", "%weights flat"])
    notebook = Notebook(lab, server, "wide.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    rows = tree(cell).locator("tbody tr")
    rows.nth(2).click()
    head, outer = cell.locator(".tensornp-panel-head"), notebook.panel.locator(".jp-WindowedPanel-outer")
    expect(head).to_be_visible()
    outer.evaluate("""node => {
      const below = document.querySelector(".tensornp-tree tbody tr:nth-child(5)").getBoundingClientRect().top;
      node.scrollTop += below - node.getBoundingClientRect().top;
    }""")
    expect(head).to_be_in_viewport(ratio=1)
    cell.get_by_role("tab", name="Values").click()
    element = cell.get_by_role("grid").locator("[tabindex='0']")
    expect(element).to_be_focused()
    lab.keyboard.press("End")
    expect(cell.locator(".tensornp-where")).to_contain_text("[0, 2]")
    for width in (1400, 1920):
        lab.set_viewport_size({"width": width, "height": 900})
        expect(rows).to_have_count(20 if width == 1920 else 8)
        assert is_beside(cell) == (width == 1920)
        expect(element).to_be_focused()
        expect(cell.locator(".tensornp-where")).to_contain_text("[0, 2]")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_legible_and_accessible(lab: Page, server: Server, dark: bool) -> None:
    """With a weight of a live model open."""
    server.write("live.ipynb", [LOAD, "%weights -o w model"])
    notebook = Notebook(lab, server, "live.ipynb", dark=dark)
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    grid = tree(cell)
    cell.get_by_label("Search the names").fill("0.weight")
    expect(grid.locator("tbody tr")).to_have_count(12)
    grid.locator("tbody tr").first.click()
    expect(cell.locator(".tensornp-weight pre")).to_be_visible()
    texts = cell.locator(".tensornp-weights :is(td, th, button, pre, .tensornp-said, .tensornp-fact span)")
    assert illegible(texts.filter(visible=True)) == []
    found = Axe().run(lab, context=".tensornp-weights")
    assert found.response["violations"] == []


def test_the_values_of_one_tree_stay_where_those_of_another_are_opened(lab: Page, server: Server) -> None:
    """At the element that was gone to, in the tab that was chosen."""
    server.write("two.ipynb", [LOAD, "%weights model", "%weights {'w': torch.arange(60.).view(6, 10)}"])
    notebook = Notebook(lab, server, "two.ipynb")
    for i in range(3):
        notebook.run_cell(i)
    first, second = notebook.cell(1), notebook.cell(2)
    tree(first)
    first.get_by_role("button", name="Scan").click()
    first.get_by_role("button", name="1 weight has NaN: 3.0.weight").click()
    expect(first.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")
    # By a key: what is drawn above may move the line away from under the mouse.
    tree(second).locator("tbody tr").first.press("Enter")
    second.get_by_role("tab", name="Values").click()
    expect(second.get_by_role("grid")).to_be_visible()
    expect(second.locator(".tensornp-where")).to_contain_text("[0, 0]")
    expect(first.get_by_role("tab", name="Values", selected=True)).to_be_visible()
    expect(first.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")


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


TRAINED = """%load_ext tensornp
import gc, torch
from tensornp.models.live.last_scan import LastScan
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(30, 30), torch.nn.Linear(30, 30), torch.nn.LayerNorm(30))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)"""
STEP = """model(torch.randn(8, 30)).square().sum().backward()
optimizer.step()"""
KEPT = "gc.collect(); sum(one.nbytes for one in gc.get_objects() if type(one) is LastScan)"


def scan(cell: Locator) -> None:
    """Scan for the first time."""
    tree(cell)
    cell.get_by_role("button", name="Scan").click()
    expect(cell.get_by_role("button", name="with findings")).to_be_visible()
