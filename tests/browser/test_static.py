"""Cards where nothing is live: a notebook that is not trusted, and a page exported from one that was run."""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat
import pytest
import torch
from nbconvert import HTMLExporter
from playwright.sync_api import Locator, Page, expect

import tensornp as tnp
from browser.contrast import READABLE, contrast
from browser.lab import TIMEOUT_S, Notebook, Server

CARDS = {
    "w = torch.arange(6.).reshape(2, 3).requires_grad_()\nw": (
        ["(2, 3)", "float32", "cpu", "requires grad", "shared"],
        "array([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32)",
        "0 bytes copied",
    ),
    "torch.tensor([0.5, -2], dtype=torch.bfloat16)": (
        ["(2,)", "bfloat16", "cpu", "float32 copy 8 bytes"],
        "array([ 0.5, -2. ], dtype=float32)",
        "8 bytes copied",
    ),
}
"""The badges, the array and a line of the receipt of what each cell shows."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """A notebook that was run without a page, as in CI."""
    folder = tmp_path_factory.mktemp("executed")
    cells = ["%load_ext tensornp\nimport torch", *CARDS]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        startup_timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "IPYTHONDIR": str(folder / "ipython")})
    return notebook


def expect_complete(cards: Locator) -> None:
    """Expect each card to show its badges, its array and, unfolded, its receipt, all of it legibly."""
    expect(cards).to_have_count(len(CARDS))
    for card, (badges, array, receipt) in zip(cards.all(), CARDS.values(), strict=True):
        for badge in badges:
            expect(card.get_by_text(badge, exact=True)).to_be_visible()
            assert contrast(card.get_by_text(badge, exact=True)) >= READABLE
        expect(card.locator("pre")).to_have_text(array)
        assert card.locator("pre").inner_text() == array
        assert contrast(card.locator("pre")) >= READABLE
        line = card.get_by_text(receipt)
        if not line.is_visible():
            card.locator("summary").click()
        expect(line).to_be_visible()
        assert contrast(line) >= READABLE


def expect_nothing_blank(children: Locator) -> None:
    """Expect outputs with words in them, or without any height."""
    for child in children.all():
        box = child.bounding_box()
        assert child.inner_text().strip() or box is None or not box["height"]


def test_cards_are_complete_in_a_notebook_that_is_not_trusted(
    lab: Page, server: Server, executed: nbformat.NotebookNode
) -> None:
    """JupyterLab strips what it does not trust, and badges, array and receipt remain, on light and on dark."""
    nbformat.write(executed, server.root / "untrusted.ipynb")
    notebook = Notebook(lab, server, "untrusted.ipynb")
    outputs = notebook.panel.locator(".jp-RenderedHTML", has=lab.locator(".tensornp"))
    expect(outputs).to_have_count(len(CARDS))
    assert not notebook.panel.locator(".jp-mod-trusted").count()
    for dark in (False, True):
        notebook.change_theme(dark=dark)
        expect_complete(notebook.panel.locator(".tensornp"))
    expect_nothing_blank(notebook.panel.locator(".jp-OutputArea-child"))
    expect(notebook.toggles()).to_have_count(0)
    expect(lab.get_by_text("model not found")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cards_are_complete_in_an_exported_page_without_a_network(
    page: Page, executed: nbformat.NotebookNode, tmp_path: Path, theme: str
) -> None:
    """The page of nbconvert shows the cards from the file alone, and no trace of a toggle that cannot live there."""
    exported = tmp_path / "exported.html"
    exported.write_text(HTMLExporter(theme=theme).from_notebook_node(executed)[0], encoding="utf-8")
    page.route("http*://**", lambda route: route.abort())
    page.goto(exported.as_uri())
    expect_complete(page.locator(".tensornp"))
    expect_nothing_blank(page.locator(".jp-OutputArea-child"))
    expect(page.get_by_text("model not found")).to_have_count(0)


def test_on_paper_nothing_is_cut(page: Page) -> None:
    """An array that scrolls on a page, and a table that is wider than it, in whatever font."""
    named = {f"a name of a layer {i}": torch.rand(1, 2, 1, 2, 3, 4, 5, 6) for i in range(3)}
    page.set_content(tnp.card(torch.zeros(100, 3)).html + tnp.card(named).html)
    # In a page that is narrower still, names stand above their figures.
    page.set_viewport_size({"width": 420, "height": 800})
    cut = """() => [...document.querySelectorAll(".tensornp, .tensornp pre")].filter((node) =>
        getComputedStyle(node).overflow !== "visible"
        && (node.scrollHeight > node.clientHeight + 1 || node.scrollWidth > node.clientWidth + 1)).length"""
    assert page.evaluate(cut) == 1, "the table scrolls on the page"
    folded = page.locator("pre").nth(1)
    expect(folded).to_be_hidden()
    page.emulate_media(media="print")
    assert page.evaluate(cut) == 0
    expect(folded).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is beyond the edge"
