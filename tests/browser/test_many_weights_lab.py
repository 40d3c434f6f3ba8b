"""50,000 weights in JupyterLab: the page never has more than a hundred lines, nor does a dead kernel empty it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server
from browser.test_weights_lab import tree

NUM_WEIGHTS = 50_000
LOAD = """%load_ext tensornp
import torch
names = [f"layers.{i}.experts.{j}.w" for i in range(100) for j in range(500)]
state = dict(zip(names[:-1], torch.arange(50_000.0).unbind()), head=torch.ones(7))
few = {name: torch.ones(1) for name in names[:500]}"""
WATCH = """() => {
  window.most = 0;
  const count = () => { window.most = Math.max(window.most, document.querySelectorAll(".jp-OutputArea tr").length); };
  new MutationObserver(count).observe(document.body, { childList: true, subtree: true });
}"""


class Many:
    """The tree of a cell, and the keys that are pressed in it."""

    def __init__(self, page: Page, grid: Locator) -> None:
        self.page, self.grid = page, grid
        self.rows = grid.locator("tbody tr")

    def expect_focus(self, name: str) -> None:
        """Wait until the line of that name has the focus; the kernel may take its time."""
        focused = self.grid.locator("tbody tr:focus bdi").first
        expect(focused).to_have_text(name)

    def press(self, key: str, name: str) -> None:
        self.page.keyboard.press(key)
        self.expect_focus(name)


def opened(page: Page, server: Server, name: str, expression: str, *more: str) -> tuple[Notebook, Locator, Many]:
    """Show weights in a notebook of that name, with more cells below."""
    server.write(name, [LOAD, f"%weights {expression}", *more])
    notebook = Notebook(page, server, name)
    page.evaluate(WATCH)
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    return notebook, cell, Many(page, tree(cell))


def test_all_of_many_weights_are_reached_by_keys_and_never_all_in_the_page(lab: Page, server: Server) -> None:
    """Searched, walked, scrolled, sorted and unfolded."""
    _, cell, many = opened(lab, server, "many.ipynb", "state")
    search = cell.get_by_label("Search the names")
    search.fill("w")
    expect(many.grid).to_have_attribute("aria-rowcount", str(NUM_WEIGHTS))
    search.press("ArrowDown")
    many.expect_focus("layers.0.experts.0.w")
    many.press("End", "layers.99.experts.498.w")
    many.press("PageUp", "layers.99.experts.478.w")
    many.press("ArrowDown", "layers.99.experts.479.w")
    many.press("Home", "layers.0.experts.0.w")
    many.press("PageDown", "layers.0.experts.20.w")
    expect(many.rows).to_have_count(20)

    # To the middle, and from there by the wheel.
    slider = cell.locator("input.tensornp-down")
    slider.evaluate("(node) => { node.value = 25000; node.dispatchEvent(new Event('input')); }")
    expect(many.rows.first).to_contain_text("layers.50.experts.0.w")
    many.rows.first.focus()
    many.grid.hover()
    lab.mouse.wheel(0, 100)
    expect(many.rows.first).to_contain_text("layers.50.experts.3.w")

    search.fill("*.77.experts.*9.w")
    expect(many.grid).to_have_attribute("aria-rowcount", "51")
    search.fill("")
    cell.get_by_role("button", name="bytes").click()
    expect(many.rows.first).to_contain_text("head")
    expect(many.grid).to_have_attribute("aria-rowcount", str(NUM_WEIGHTS + 1))
    for _ in range(2):
        cell.get_by_role("button", name="bytes").click()

    # The tree again, in which the layers but the last are one line: unfolded, it is as long as they are.
    expect(many.grid).to_have_attribute("aria-rowcount", "5")
    many.rows.first.focus()
    many.press("ArrowDown", "{0..98}.experts.{0..499}.w")
    lab.keyboard.press("ArrowRight")
    expect(many.grid).to_have_attribute("aria-rowcount", "49505")
    many.press("ArrowDown", "layers.0.experts.0")
    many.press("PageDown", "layers.0.experts.20")
    many.press("End", "head")
    expect(many.rows).to_have_count(20)
    most = lab.evaluate("window.most")
    assert 20 < most <= 100, most


def test_a_tree_and_a_toggle_without_a_kernel_stay_readable_and_say_so(lab: Page, server: Server) -> None:
    """At the first key or click that would ask it; what is seen stays."""
    errors: list[str] = []
    lab.on("pageerror", lambda error: errors.append(str(error)))
    notebook, cell, many = opened(lab, server, "dead.ipynb", "few", "few[names[0]]")
    notebook.run_cell(2)
    expect(notebook.radio("view")).to_be_checked()
    search = cell.get_by_label("Search the names")
    search.fill("w")
    expect(many.grid).to_have_attribute("aria-rowcount", "501")
    search.press("ArrowDown")
    many.press("PageDown", "layers.0.experts.20.w")
    notebook.menu("Kernel", "Shut Down Kernel")
    expect(lab.locator(".jp-Notebook-ExecutionIndicator:visible")).to_have_attribute("data-status", "unknown")
    # A name stands in parts that give way one by one.
    seen = many.rows.all_text_contents()
    many.rows.last.focus()
    lab.keyboard.press("End")
    expect(cell.get_by_text("the kernel of this card is gone; run the cell again").first).to_be_visible()
    expect(search).to_be_disabled()
    for key in ("Home", "PageDown", "ArrowRight", "Enter"):
        lab.keyboard.press(key)
    assert many.rows.all_text_contents() == seen
    assert len(seen) == 20
    # A long name is in parts.
    assert re.search(r"layers\.0\.experts\.\d+\.w", seen[0].replace("\n", ""))
    notebook.radio("share").click()
    expect(notebook.status()).to_contain_text("run the cell again")
    expect(notebook.radio("copy")).to_be_disabled()
    expect(notebook.cell(2).get_by_text("array: shared, read-only").filter(visible=True)).to_have_count(1)
    assert errors == []
