"""Tensors in Notebook 7: the same cards, toggle and keys as in JupyterLab."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from browser.lab import Notebook, Server


def test_notebook_7_shows_toggles_and_binds_and_keeps_its_commands_apart(page: Page, server: Server) -> None:
    """A choice by keyboard, a bound name, letters that cut or insert no cell, and no widget in the saved file."""
    proof = "w[0] = 10\nprint(w_np.tolist(), w_np.flags.writeable)"
    server.write("seven.ipynb", ["%load_ext tensornp\nimport torch", "w = torch.arange(3.)\nw", proof])
    notebook = Notebook(page, server, "seven.ipynb", app="notebooks")
    notebook.run_cell(0)
    notebook.run_cell(1)
    expect(notebook.cell(1).get_by_text("array([0., 1., 2.], dtype=float32)").first).to_be_visible()
    notebook.radio("view").press("ArrowRight")
    expect(notebook.cell(1).get_by_text("array: shared, writeable")).to_be_visible()
    for key in "abxmy":
        page.keyboard.press(key)
    expect(notebook.radio("share")).to_be_focused()
    notebook.panel.get_by_role("textbox", name="Name to bind the array to").press("Enter")
    expect(notebook.status()).to_have_text("bound to w_np (share)")
    notebook.run_cell(2)
    expect(notebook.outputs(2)).to_have_text("[10.0, 1.0, 2.0] True")

    notebook.radio("share").focus()
    saved = notebook.save(lambda: page.keyboard.press("Control+s")).read_text()
    assert "vnd.jupyter.widget" not in saved
    assert [cell["cell_type"] for cell in json.loads(saved)["cells"]] == ["code"] * 3
