"""Tensors, models and passes in JupyterLab, from the first card to the file that is opened again."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.contrast import illegible
from browser.lab import Notebook, Server, close_notebooks

LOAD = "%load_ext tensornp\nimport torch"
SHOW_W = "w = torch.arange(3.)\nw"
SHOW_V = "v = torch.tensor([7., 8.])\nv"
MODEL = """class Mask(torch.nn.Linear):
    def forward(self, x):
        return (super().forward(x) - torch.inf).softmax(-1)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm, self.act = torch.nn.Linear(30, 40), torch.nn.LayerNorm(40), torch.nn.Linear(40, 30)
    def forward(self, x):
        return self.act(self.norm(self.lin(x)))
torch.manual_seed(0)
model = torch.nn.Sequential(*[Block() for _ in range(12)])
"""
NAME = "Name to assign the array to"


def opened(page: Page, server: Server, name: str, *cells: str, num_run: int = 1, **options: Any) -> Notebook:
    """Open a notebook of cells behind one that loads tensornp, which has run with so many of them."""
    server.write(name, [LOAD, *cells])
    notebook = Notebook(page, server, name, **options)
    for index in range(num_run + 1):
        notebook.run_cell(index)
    return notebook


def tree(cell: Locator) -> Locator:
    """The tree of a cell, once its lines are there."""
    found = cell.get_by_role("treegrid")
    expect(found.locator("tbody tr[tabindex='0']")).to_be_visible()
    return found


def test_the_toggle_binds_arrays_that_share_or_copy_as_their_mode_says(lab: Page, server: Server) -> None:
    """Mouse and keyboard choose, no key is a command; what each name is bound to is proved in the kernel by writes."""
    proof = """
        w[0] = 10
        by_share[1] = 20
        try:
            by_view[2] = 30
        except ValueError:
            print("read-only")
        print(w.tolist(), by_view.tolist(), by_share.tolist(), by_copy.tolist())
    """
    notebook = opened(lab, server, "modes.ipynb", SHOW_W, "if True:" + proof)
    card, name = notebook.outputs(1).first, notebook.panel.get_by_role("textbox", name=NAME)

    def fact(text: str) -> None:
        expect(card.get_by_text(text, exact=True).filter(visible=True)).to_have_count(1)

    fact("array([0., 1., 2.], dtype=float32)")
    fact("shared")
    expect(name).to_have_value("w_np")
    # Letters that would insert, cut or retype cells stay in the toggle.
    for control in (notebook.radio("view"), name):
        control.focus()
        for key in "abxmy":
            lab.keyboard.press(key)
        expect(control).to_be_focused()
    expect(name).to_have_value("w_npabxmy")
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(3)
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
    notebook = opened(lab, server, "saved.ipynb", SHOW_W, SHOW_V)
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
    again = Notebook(lab, server, "saved.ipynb")
    for index, array in arrays.items():
        expect(again.cell(index).get_by_text("shared")).to_be_visible()
        expect(again.cell(index).get_by_text(array)).to_be_visible()
        again.cell(index).locator("summary").click()
        expect(again.cell(index).get_by_text("0 bytes copied")).to_be_visible()
    expect(again.toggles()).to_have_count(0)
    expect(lab.get_by_text("model not found")).to_have_count(0)


def test_after_a_reload_and_after_closing_the_toggle_is_back(lab: Page, server: Server) -> None:
    """The kernel lives on, and so does the toggle, in its card and with its mode; and there is one of it."""
    notebook = opened(lab, server, "reloaded.ipynb", SHOW_W, SHOW_V)
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
    notebook = opened(lab, server, "legible.ipynb", *shown, num_run=len(shown))
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


def test_after_run_all_the_toggle_always_answers(lab: Page, server: Server) -> None:
    """Each time, with the settings that everybody has; the page meets no error, and the file holds no trace."""
    tensors = [f"w{i} = torch.arange({i + 2}.)\nw{i}" for i in range(4)]
    cells = [LOAD, *tensors, "%tensors", "torch.ones(3, device='meta')"]
    errors: list[str] = []
    lab.on("pageerror", lambda error: errors.append(str(error)))
    lab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    server.write("all.ipynb", cells)
    notebook = Notebook(lab, server, "all.ipynb")
    errors.clear()
    card = notebook.cell(4)
    for mode, fact in (("share", "shared, writeable"), ("copy", "copy 20 bytes")):
        notebook.run_all()
        card.get_by_role("radio", name=mode, exact=True).click()
        expect(card.get_by_text(fact, exact=True)).to_be_visible()
        card.get_by_role("textbox", name=NAME).fill(f"by_{mode}")
        card.get_by_role("button", name="Assign", exact=True).click()
        expect(notebook.status()).to_have_text(f"assigned to by_{mode} ({mode})")
    assert not [error for error in errors if "widget" in error.lower() or "comm" in error.lower() or "model" in error]
    outputs = [cell["outputs"] for cell in json.loads(notebook.save().read_text())["cells"]]
    assert [len(found) for found in outputs] == [1] * len(cells), "the first says that the extension is loaded"


def test_after_run_all_everything_answers_while_the_last_cell_runs(lab: Page, server: Server) -> None:
    """Whoever runs all and waits for a training looks at the tensors meanwhile."""
    training = "import pathlib, time\nwhile not pathlib.Path('ended').exists(): time.sleep(0.05)"
    shown = ["model = torch.nn.Linear(3, 2)\nmodel", "%weights model", "w = torch.arange(3.)\nw"]
    server.write("training.ipynb", [LOAD, *shown, training])
    notebook = Notebook(lab, server, "training.ipynb")
    notebook.menu("Run", "Run All Cells")
    try:
        for index in (1, 2):
            cell = notebook.cell(index)
            cell.get_by_role("treegrid").get_by_text("weight", exact=True).click()
            expect(cell.locator(".tensornp-panel pre")).to_contain_text("array([[")
        card = notebook.cell(3)
        card.get_by_role("radio", name="copy", exact=True).click()
        expect(card.get_by_text("copy 12 bytes", exact=True)).to_be_visible()
        assert "[*]" in notebook.cell(4).inner_text()
    finally:
        (server.root / "ended").touch()


def test_a_nan_is_found_in_two_clicks_and_keys_go_on_from_there(page: Page, server: Server) -> None:
    """In Notebook 7; letters and arrows are no commands of it, and Escape makes them so again."""
    large = "w = torch.randn(6, 300, 400) / 20\nw[2, 250, 350] = torch.nan\nw"
    notebook = opened(page, server, "values.ipynb", large, app="notebooks")
    cell = notebook.cell(1)
    grid, where = cell.get_by_role("grid"), cell.locator(".tensornp-where")
    cell.get_by_role("button", name="Values").click()
    expect(grid.locator("td[tabindex='0']")).to_be_visible()
    cell.get_by_role("button", name="next NaN").click()
    expect(where).to_have_text("[2, 250, 350]  nan  float32")
    grid.locator("td[tabindex='0']").click()
    for key in ("ArrowDown", "ArrowRight", "b", "x", "a", "m", "Control+End"):
        page.keyboard.press(key)
    expect(where).to_have_text(re.compile(r"^\[2, 299, 399\] "))
    expect(grid.locator("td[tabindex='0']")).to_be_focused()
    page.keyboard.press("n")
    expect(where).to_have_text(re.compile(r"^\[2, 250, 350\]  nan"))
    page.keyboard.press("g")
    page.keyboard.type("0, 3, 4")
    page.keyboard.press("Enter")
    expect(where).to_have_text(re.compile(r"^\[0, 3, 4\] "))
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(3)
    saved = notebook.save().read_text()
    assert "vnd.jupyter.widget" not in saved and "tensornp-values" not in saved
    cell.get_by_role("button", name="Values").click()
    expect(grid).to_have_count(0)


def test_two_clicks_lead_to_a_nan_without_scrolling(lab: Page, server: Server) -> None:
    """In a narrow window; Escape leads back, a cell that runs again has one tree, and a model that is gone says so."""
    lab.set_viewport_size({"width": 800, "height": 900})
    broken = MODEL + "with torch.no_grad():\n    model[3].lin.weight[17, 5] = torch.nan"
    notebook = opened(lab, server, "nan.ipynb", broken, "%weights model", "del model", num_run=2)
    cell = notebook.cell(2)
    tree(cell)
    cell.get_by_role("button", name="Read values").click()
    cell.get_by_role("button", name="1 weight has NaN: 3.lin.weight").click()
    element = cell.get_by_role("grid").locator("td.tensornp-nan")
    expect(element).to_be_focused()
    # A part of a pixel may be cut off.
    expect(element).to_be_in_viewport(ratio=0.99)
    expect(cell.locator(".tensornp-where")).to_contain_text("[17, 5]  nan")
    lab.keyboard.press("Escape")
    expect(cell.locator(".tensornp-panel")).to_be_hidden()
    assert lab.evaluate("document.activeElement.closest('[role=treegrid]') !== null")

    notebook.run_cell(2)
    grid = tree(cell)
    expect(grid).to_have_count(1)
    notebook.run_cell(3)
    cell.get_by_label("Search the names").fill("0.lin.bias")
    expect(grid.locator("tbody tr")).to_have_count(1)
    grid.locator("tbody tr").first.click()
    expect(cell.locator(".tensornp-panel")).to_contain_text("reaches no weight any more")


def test_a_step_is_seen_in_one_line_and_one_click(lab: Page, server: Server) -> None:
    """What moved most stands first, a click shows both sides there, and a cell that runs again has one table."""
    step = """before = {name: weight.clone() for name, weight in model.state_dict().items()}
model(torch.randn(8, 30)).square().mean().backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
with torch.no_grad():
    model[4].act.weight[20, 30] += 3"""
    notebook = opened(lab, server, "diff.ipynb", MODEL + step, "%tensordiff before model", "del before", num_run=2)
    cell = notebook.cell(2)
    expect(cell.get_by_role("searchbox")).to_be_visible()
    first = cell.locator("tbody tr").first
    expect(first).to_contain_text("{0..11}.act.weight × 12")
    first.get_by_role("button").click()
    pair = cell.locator(".tensornp-opened-pair")
    expect(pair.get_by_role("group", name="Side").get_by_role("button")).to_have_text(["before", "after", "Δ"])
    current = cell.locator("td.tensornp-current")
    expect(current).to_be_focused()
    expect(current).to_have_text(re.compile(r"3\.00\d"))
    # No key is a command of the notebook.
    for key in ("ArrowUp", "ArrowDown", "n", "x"):
        lab.keyboard.press(key)
    expect(notebook.panel.locator(".jp-CodeCell")).to_have_count(4)
    lab.keyboard.press("Escape")
    expect(pair).to_have_count(0)
    notebook.run_cell(2)
    expect(cell.get_by_role("searchbox")).to_have_count(1)
    notebook.run_cell(3)
    cell.locator("tbody tr").first.get_by_role("button").click()
    expect(pair.locator(".tensornp-error")).to_contain_text("before")
    assert "vnd.jupyter.widget" not in notebook.save().read_text()


def test_the_verdict_leads_to_its_row_by_keys_alone(lab: Page, server: Server) -> None:
    """The static tree gives its place to the live one; no key is a command of the notebook."""
    follow = "%%follow -o run model\nmodel(torch.ones(2, 30)).sum().backward()"
    notebook = opened(lab, server, "follow.ipynb", MODEL + "model[7].act = Mask(40, 30)", follow, num_run=2)
    cell = notebook.cell(2)
    grid = tree(cell)
    expect(cell.locator(".tensornp-static")).to_be_hidden()
    link = cell.get_by_role("button", name="7.act (Mask)", exact=True)
    link.focus()
    lab.keyboard.press("Enter")
    panel = cell.locator(".tensornp-panel")
    expect(panel.locator(".tensornp-panel-name")).to_have_text("7.act (Mask)")
    expect(panel).to_contain_text("return self.act(self.norm(self.lin(x)))")
    row = grid.locator("tr.tensornp-opened")
    expect(row).to_be_focused()
    expect(row).to_contain_text("first NaN")
    for key in ("d", "d", "x", "ArrowUp", "Enter"):
        lab.keyboard.press(key)
    expect(panel.locator(".tensornp-panel-name")).to_have_text("7.norm (LayerNorm)")
    lab.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    lab.keyboard.press("/")
    expect(cell.get_by_label("Search the names")).to_be_focused()
    lab.keyboard.type("{0..3}.lin")
    expect(grid.locator("tbody tr")).to_have_count(4)
    assert notebook.panel.locator(".jp-CodeCell").count() == 3


def test_a_button_runs_the_cell_again_and_finds_the_operator(lab: Page, server: Server) -> None:
    """Its output comes below the card, with a tree of its own; an error of the cell is told."""
    made = MODEL + "model[7].act = Mask(40, 30)\ncount = 0"
    follow = "%%follow model\ncount = count + 1\nmodel(torch.ones(2, 30)).sum()"
    notebook = opened(lab, server, "find.ipynb", made, follow, "print(count)\ndel count", num_run=2)
    cell = notebook.cell(2)
    find = cell.get_by_role("button", name="Find the operator")
    expect(find).to_have_attribute(
        "title", "Run the cell again, with all that it does, as %%follow --operators --only 7.act model"
    )
    find.click()
    expect(cell).to_contain_text("at softmax, In[2] line 3")
    expect(cell.get_by_role("treegrid")).to_have_count(2)
    expect(find).to_have_count(1)
    notebook.run_cell(3)
    expect(notebook.outputs(3)).to_have_text("2")
    find.click()
    expect(cell).to_contain_text("NameError: name 'count' is not defined")
