"""Who shares memory, what changed and what a write would spoil, as a user sees it in JupyterLab."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server

LOAD = "%load_ext tensornp\nimport torch"


def names_in(table: Locator) -> list[str]:
    return [row.locator("th").inner_text() for row in table.locator("tbody tr").filter(visible=True).all()]


def test_the_card_names_who_shares_its_memory_and_says_what_changed(lab: Page, server: Server) -> None:
    """The map on the card, the exact relation behind a name, and a NumPy write that the next card tells."""
    cells = ["w = torch.arange(6.).view(2, 3)\nb, turned, row = w.numpy(), w.T, w[0]", "w", "b[0] = 7\nw"]
    server.write("map.ipynb", [LOAD, *cells])
    notebook = Notebook(lab, server, "map.ipynb")
    notebook.run_all()
    first, second = notebook.outputs(2).first, notebook.outputs(3).first
    expect(first).to_contain_text("same memory as b (NumPy array), turned")
    expect(first).to_contain_text("overlaps row")
    expect(first.locator("[title='tensor: overlapping, bytes 0 to 12']")).to_have_text("row")
    expect(first.get_by_text("changed since")).to_have_count(0)
    # The toggle has docked into this card: what it says of memory stays in sight.
    expect(second).to_contain_text("same memory as b (NumPy array), turned")
    changed = "changed since the card in In[3] · unseen by autograd"
    expect(second.get_by_text(changed).filter(visible=True)).to_have_count(1)


def test_the_table_sorts_and_filters_by_mouse_and_keyboard_and_is_saved_plain(lab: Page, server: Server) -> None:
    """Live over the static table: three presses of a heading lead back to the groups, and the file holds no widget."""
    make = "big = torch.zeros(3, 1000)\nalpha = torch.zeros(2)\npart = big[1]"
    server.write("table.ipynb", [LOAD, make, "%tensors", "%tensors"])
    notebook = Notebook(lab, server, "table.ipynb")
    for index in range(3):
        notebook.run_cell(index)
    table = notebook.outputs(2).first.locator("table")
    grouped = ["big", "└ part", "alpha"]
    heading = table.get_by_role("columnheader", name=re.compile("^bytes"))
    expect(heading.get_by_role("button")).to_be_visible()
    assert names_in(table) == grouped
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert names_in(table) == ["big", "part", "alpha"]
    heading.get_by_role("button").press("Enter")
    assert names_in(table) == ["alpha", "part", "big"]
    heading.get_by_role("button").press("Space")
    expect(heading).to_have_attribute("aria-sort", "none")
    assert names_in(table) == grouped
    filter_field = notebook.outputs(2).first.get_by_role("searchbox")
    # A key that is a command of the notebook elsewhere: it must only be typed here.
    filter_field.press_sequentially("a")
    expect(filter_field).to_have_value("a")
    filter_field.press_sequentially("l")
    expect(table.locator("tbody tr")).to_have_count(1)
    assert names_in(table) == ["alpha"]

    notebook.run_cell(3)
    expect(notebook.outputs(3).first.get_by_role("searchbox")).to_be_visible()
    expect(notebook.panel.get_by_role("searchbox")).to_have_count(1)
    assert names_in(table) == grouped
    saved = notebook.save().read_text()
    assert "vnd.jupyter.widget" not in saved
    assert "12,000 bytes" in saved
