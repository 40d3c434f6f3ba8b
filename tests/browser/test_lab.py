"""Tensors in JupyterLab, from the first card to the file that is opened again."""

from __future__ import annotations

import html
import json
import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.contrast import illegible
from browser.lab import Notebook, Server, close_notebooks

LOAD = "%load_ext tensornp\nimport torch"
SHOW_W = "w = torch.arange(3.)\nw"
SHOW_V = "v = torch.tensor([7., 8.])\nv"


def test_the_toggle_binds_arrays_that_share_or_copy_as_their_mode_says(lab: Page, server: Server) -> None:
    """Mouse and keyboard choose the mode; what each name is bound to is proved in the kernel by writes."""
    proof = """
        w[0] = 10
        by_share[1] = 20
        try:
            by_view[2] = 30
        except ValueError:
            print("read-only")
        print(w.tolist(), by_view.tolist(), by_share.tolist(), by_copy.tolist())
    """
    server.write("modes.ipynb", [LOAD, SHOW_W, "if True:" + proof])
    notebook = Notebook(lab, server, "modes.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    card, name = notebook.outputs(1).first, notebook.panel.get_by_role("textbox", name="Name to assign the array to")

    def fact(text: str) -> None:
        expect(card.get_by_text(text, exact=True).filter(visible=True)).to_have_count(1)

    fact("array([0., 1., 2.], dtype=float32)")
    fact("shared")
    expect(name).to_have_value("w_np")
    name.fill("by_view")
    name.press("Enter")
    expect(notebook.status()).to_have_text("assigned to by_view (view)")

    notebook.radio("view").press("ArrowRight")
    fact("shared, writeable")
    expect(notebook.radio("share")).to_be_focused()
    name.fill("by_share")
    name.press("Enter")
    expect(notebook.status()).to_have_text("assigned to by_share (share)")

    notebook.radio("copy").click()
    fact("copy 12 bytes")
    name.fill("by_view")
    card.get_by_role("button", name="Assign", exact=True).click()
    expect(notebook.status()).to_contain_text("by_view already names something")
    name.fill("by_copy")
    card.get_by_role("button", name="Assign", exact=True).click()
    expect(notebook.status()).to_have_text("assigned to by_copy (copy)")

    notebook.run_cell(2)
    seen = [10.0, 20.0, 2.0]
    expect(notebook.outputs(2)).to_have_text(f"read-only\n{seen} {seen} {seen} [0.0, 1.0, 2.0]")


def test_the_toggle_moves_on_and_a_saved_notebook_holds_cards_and_no_widget(lab: Page, server: Server) -> None:
    """The last shown card has the toggle, the one before is static again, and the file opens complete anywhere."""
    arrays = {1: "array([0., 1., 2.], dtype=float32)", 2: "array([7., 8.], dtype=float32)"}
    server.write("saved.ipynb", [LOAD, SHOW_W, SHOW_V])
    notebook = Notebook(lab, server, "saved.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    expect(notebook.cell(1).get_by_role("radiogroup")).to_be_visible()
    notebook.radio("share").click()
    expect(notebook.cell(1).get_by_text("shared, writeable")).to_be_visible()

    notebook.run_cell(2)
    expect(notebook.cell(2).get_by_role("radiogroup")).to_be_visible()
    expect(notebook.toggles()).to_have_count(1)
    expect(notebook.cell(1).get_by_text("shared").filter(visible=True)).to_have_count(1)

    path = notebook.save()
    assert "vnd.jupyter.widget" not in path.read_text()
    cells = json.loads(path.read_text())["cells"]
    for index, array in arrays.items():
        card = "".join(cells[index]["outputs"][0]["data"]["text/html"])
        words = html.unescape(re.sub("<[^>]*>", " ", card))
        for fact in ("float32", "cpu", "shared", array, "0 bytes copied"):
            assert fact in words

    close_notebooks(lab)
    server.end_sessions()
    opened = Notebook(lab, server, "saved.ipynb")
    for index, array in arrays.items():
        expect(opened.cell(index).get_by_text("shared")).to_be_visible()
        expect(opened.cell(index).get_by_text(array)).to_be_visible()
        opened.cell(index).locator("summary").click()
        expect(opened.cell(index).get_by_text("0 bytes copied")).to_be_visible()
    expect(opened.toggles()).to_have_count(0)
    expect(lab.get_by_text("model not found")).to_have_count(0)


def test_after_a_reload_and_after_closing_the_toggle_is_back(lab: Page, server: Server) -> None:
    """The kernel lives on, and so does the toggle, in its card and with its mode; and there is one of it."""
    server.write("reloaded.ipynb", [LOAD, SHOW_W, SHOW_V])
    notebook = Notebook(lab, server, "reloaded.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.radio("share").click()
    notebook.save()
    lab.reload()
    expect(notebook.radio("share")).to_be_checked()
    notebook.radio("copy").click()
    expect(notebook.cell(1).get_by_text("copy 12 bytes")).to_be_visible()

    # The page keeps the widgets of a closed notebook, which have no kernel any more and leave the card alone.
    notebook.save()
    lab.locator(".lm-TabBar-tab.jp-mod-current .lm-TabBar-tabCloseIcon").first.click()
    expect(lab.locator(".jp-NotebookPanel")).to_have_count(0)
    lab.locator(".jp-DirListing-item", has_text="reloaded.ipynb").dblclick()
    notebook.radio("share").click()
    expect(notebook.cell(1).get_by_text("shared, writeable")).to_be_visible()
    expect(notebook.toggles()).to_have_count(1)
    notebook.run_cell(2)
    expect(notebook.cell(2).get_by_role("radiogroup")).to_be_visible()
    expect(notebook.toggles()).to_have_count(1)


def test_cards_values_and_trees_are_legible_in_light_and_dark(lab: Page, server: Server) -> None:
    """Every badge, array, receipt, control and number contrasts with what is painted behind it."""
    shown = [
        "torch.zeros(3, requires_grad=True)",
        "torch.zeros(3, device='meta')",
        "model = torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.LayerNorm(40))\n%weights model",
        "v = torch.linspace(-1, 1, 60).reshape(6, 10)\nv[2, 3], v[4, 1] = torch.nan, torch.inf\nv",
    ]
    server.write("legible.ipynb", [LOAD, *shown])
    notebook = Notebook(lab, server, "legible.ipynb")
    notebook.run_all()
    weights, card = notebook.cell(3), notebook.cell(4)
    weights.get_by_role("treegrid").get_by_text("weight", exact=True).first.click()
    expect(weights.locator(".tensornp-panel pre")).to_be_visible()
    card.get_by_role("button", name="Values").click()
    expect(card.get_by_role("grid")).to_be_visible()
    for receipt in notebook.panel.locator("summary").filter(visible=True).all():
        receipt.click()
    cards = notebook.panel.locator(".tensornp, .tensornp-weights, .tensornp-values")
    texts = cards.locator("span, pre, summary, code, details, label, button, td, th")
    texts = texts.filter(visible=True, has_text=re.compile(r"\S"))
    for dark in (False, True):
        notebook.change_theme(dark=dark)
        # While the theme changes, the page shows nothing for a moment.
        expect(texts.nth(30)).to_be_visible()
        assert illegible(texts) == []
        found = Axe().run(lab, context=".tensornp")
        assert not found.violations_count, found.generate_report()


def test_keys_pressed_in_the_toggle_are_no_notebook_commands(lab: Page, server: Server) -> None:
    """Letters that would cut, insert or retype cells stay in the toggle, from a radio and the name."""
    server.write("keys.ipynb", [LOAD, SHOW_W])
    notebook = Notebook(lab, server, "keys.ipynb")
    notebook.run_all()
    for control in (notebook.radio("view"), notebook.panel.get_by_role("textbox", name="Name to assign the array to")):
        control.focus()
        for key in "abxmy":
            lab.keyboard.press(key)
        expect(control).to_be_focused()
    expect(control).to_have_value("w_npabxmy")
    notebook.save()
    kinds = [cell["cell_type"] for cell in json.loads((server.root / notebook.name).read_text())["cells"]]
    assert kinds == ["code", "code"]
