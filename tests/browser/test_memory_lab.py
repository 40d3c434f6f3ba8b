"""Who shares memory, what changed and what a write would spoil, as a user sees it in JupyterLab."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from browser.contrast import READABLE, contrast
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


def test_share_warns_of_the_wrong_gradient_and_view_does_not(lab: Page, server: Server) -> None:
    """The badge comes with the mode in which NumPy could write; the receipt of view says that it cannot."""
    server.write("saved.ipynb", [LOAD, "x = torch.ones(3, requires_grad=True)\ny = x.exp() * x", "x"])
    notebook = Notebook(lab, server, "saved.ipynb")
    notebook.run_all()
    card = notebook.outputs(2).first
    warning = card.get_by_text(re.compile("^saved for MulBackward0$")).filter(visible=True)
    expect(notebook.radio("view")).to_be_checked()
    expect(warning).to_have_count(0)
    card.locator("summary").filter(visible=True).click()
    expect(card.get_by_text("NumPy cannot spoil the gradients").filter(visible=True)).to_have_count(1)
    notebook.radio("share").click()
    expect(warning).to_have_count(1)
    # The receipt says it, and the badge to who points at it.
    sentence = re.compile("wrong gradients without an error")
    expect(card.locator(".tensornp-line").filter(has_text=sentence)).to_have_count(1)
    expect(warning).not_to_have_attribute("title", sentence)
    # The kernel's answer makes the badges anew.
    expect(card.locator(".tensornp-unconfirmed")).to_have_count(0)
    warning.hover()
    expect(warning).to_have_attribute("title", sentence)
    notebook.radio("copy").click()
    expect(warning).to_have_count(0)


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


def test_filter_and_sort_see_all_rows_and_say_what_they_have_not_seen(lab: Page, server: Server) -> None:
    """Rows that are not printed too; more than a page should hold come on demand; what the kernel kept is said."""
    make = """
        layers = {f"layers.{i}.{n}.weight": torch.zeros(9 - i % 9) for i in range(120) for n in ("query", "key")}
        many = [torch.zeros(1) for _ in range(2300)]
    """
    server.write("filter.ipynb", [LOAD, make, "%tensors layers", "%tensors"])
    notebook = Notebook(lab, server, "filter.ipynb")
    for index in range(3):
        notebook.run_cell(index)
    output = notebook.outputs(2).first
    rows, filter_field = output.locator("tbody tr"), output.get_by_role("searchbox")
    found, more = output.locator("[aria-live]"), output.get_by_role("button", name=re.compile("more of"))
    expect(found).to_have_text("18 lines of 240 names")
    # Those that are alike but for a number are printed as one.
    expect(rows).to_have_count(18)
    expect(rows.first).to_contain_text("× ")
    filter_field.fill("query")
    expect(found).to_have_text("120 of 240 names")
    expect(rows).to_have_count(120)
    assert all("query" in row for row in rows.get_by_role("rowheader").all_inner_texts())
    # Words, by the grammar of all searches.
    filter_field.fill("query layers.7.")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("(2,)")
    filter_field.fill("")
    expect(rows).to_have_count(18)
    output.get_by_role("columnheader", name="name").get_by_role("button").click()
    expect(rows).to_have_count(200)
    expect(more).to_have_text("40 rows more of 240")
    more.press("Enter")
    expect(rows).to_have_count(240)
    expect(more).to_be_hidden()
    names = rows.get_by_role("rowheader").all_inner_texts()
    assert names[:3] == [f"layers['layers.{i}.{n}.weight']" for i, n in ((0, "key"), (0, "query"), (1, "key"))]
    widths = [cell.bounding_box() for cell in (rows.first.locator("td").first, output.locator("thead th").nth(1))]
    assert widths[0]["x"] == widths[1]["x"]

    notebook.run_cell(3)
    expect(notebook.outputs(3).first.locator("[aria-live]")).to_have_text(
        re.compile(r"lines? of 2,000 names; 540 more were not searched$")
    )
    expect(rows).to_have_count(18)


def test_memory_lines_table_and_watch_are_legible_in_light_and_dark(lab: Page, server: Server) -> None:
    """Contrast and axe over all that this adds to a page."""
    cells = [
        "w = torch.zeros(3)\nb = w.numpy()\n%tensorwatch w", "w", "b[0] = 1", "%tensors",
        "s = %tonumpy --share torch.ones(2, requires_grad=True).exp()",
        "import tensornp as tnp\ntnp.inspect(w)", "tnp.aliases(w)", "tnp.plan(w)", "torch.nn.Linear(2, 2).parameters()",
    ]  # fmt: skip
    server.write("legible-memory.ipynb", [LOAD, *cells])
    notebook = Notebook(lab, server, "legible-memory.ipynb")
    notebook.run_all()
    expect(notebook.outputs(3)).to_contain_text("w: element 0 of 3 · largest |Δ| 1 at [0] · unseen by autograd")
    expect(notebook.outputs(5).first).to_contain_text("a NumPy write here gives wrong gradients without an error")
    expect(notebook.outputs(4).first.get_by_role("searchbox")).to_be_visible()
    expect(notebook.outputs(9).first).to_contain_text("generator of 2 tensors")
    texts = notebook.panel.locator(".tensornp").locator("div, span, code, td, th, button").filter(visible=True)
    for dark in (False, True):
        notebook.change_theme(dark=dark)
        expect(texts.nth(20)).to_be_visible()
        for text in texts.all():
            assert contrast(text) >= READABLE, text.inner_text()
        found = Axe().run(lab, context=".tensornp")
        assert found.violations_count == 0, found.generate_report()
