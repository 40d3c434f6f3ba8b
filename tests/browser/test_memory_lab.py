"""Who shares memory, what changed and what a write would spoil, as a user sees it in JupyterLab."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser.lab import Notebook, Server

LOAD = "%load_ext tensornp\nimport torch"


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
    expect(second.locator("span span", has_text=changed).filter(visible=True)).to_have_count(1)
