"""What most people do: Run All, and then a click."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from browser.lab import Notebook, Server

LOAD = "%load_ext tensornp\nimport torch"
TIMES = 2
CELLS = [
    LOAD,
    *(f"w{i} = torch.arange({i + 2}.)\nw{i}" for i in range(4)),
    "%tensors",
    "torch.ones(3, device='meta')",
]
LAST_CARD = 4


def test_after_run_all_the_toggle_always_answers(lab: Page, server: Server) -> None:
    """Each time, with the settings that everybody has; the page meets no error, and the file holds no trace."""
    errors: list[str] = []
    lab.on("pageerror", lambda error: errors.append(str(error)))
    lab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    server.write("all.ipynb", CELLS)
    notebook = Notebook(lab, server, "all.ipynb")
    errors.clear()
    card = notebook.cell(LAST_CARD)
    for time in range(TIMES):
        notebook.run_all()
        mode, fact = (("share", "shared, writeable"), ("copy", "copy 20 bytes"))[time % 2]
        card.get_by_role("radio", name=mode, exact=True).click()
        expect(card.get_by_text(fact, exact=True)).to_be_visible()
        card.get_by_role("textbox", name="Name to assign the array to").fill(f"{mode}_{time}")
        card.get_by_role("button", name="Assign", exact=True).click()
        expect(notebook.status()).to_have_text(f"assigned to {mode}_{time} ({mode})")
    assert not [error for error in errors if "widget" in error.lower() or "comm" in error.lower() or "model" in error]
    outputs = [cell["outputs"] for cell in json.loads(notebook.save().read_text())["cells"]]
    assert [len(found) for found in outputs] == [1] * len(CELLS), "the first says that the extension is loaded"


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
