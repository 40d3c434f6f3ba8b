"""How much of a page it takes, and the picture of it that the README shows."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser.lab import Notebook, Server

MAKE = """
    import torch
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(3, 16, 3)
    images, labels = torch.rand(8, 3, 32, 32), torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
    logits = torch.nn.Linear(64, 10)(torch.randn(8, 64))
    loss = torch.nn.functional.cross_entropy(logits, labels)
    half = torch.randn(4, 6).bfloat16()
"""
EVERYDAY = ["conv.weight", "images", "labels", "logits", "loss", "half"]


def heights(notebook: Notebook) -> dict[str, int]:
    """Return how many pixels the output of each everyday tensor takes."""
    found = {}
    for index, name in enumerate(EVERYDAY, 2):
        output = notebook.cell(index).locator(".jp-OutputArea-output").first
        output.scroll_into_view_if_needed()
        found[name] = round(output.bounding_box()["height"])
    return found


def test_six_everyday_tensors_take_less_page_than_torch_s_repr(lab: Page, server: Server) -> None:
    """Fewer than 1,000 pixels together, where a line of an array has 17."""
    server.write("six.ipynb", ["0", MAKE, *EVERYDAY, "%load_ext tensornp"])
    lab.set_viewport_size({"width": 1400, "height": 900})
    notebook = Notebook(lab, server, "six.ipynb")
    # The last cell loads the extension.
    notebook.run_all()
    torchs = heights(notebook)
    notebook.run_all()
    expect(notebook.toggles()).to_have_count(1)
    ours = heights(notebook)
    line = notebook.cell(5).locator("pre").first.evaluate("(pre) => parseFloat(getComputedStyle(pre).lineHeight)")
    said = {"torch's repr": torchs, "cards": ours}
    print(f"line {line}", {name: (sum(each.values()), each) for name, each in said.items()})
    assert sum(ours.values()) < min(1000 / 17 * line, sum(torchs.values()))
