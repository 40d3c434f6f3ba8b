"""How much of a page it takes, and the picture of it that the README shows."""

from __future__ import annotations

from pathlib import Path

from browser.lab import Notebook, Server
from browser.moving_picture import play
from PIL import Image
from playwright.sync_api import Page, expect

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
MOST_BYTES = 2_000_000


def heights(notebook: Notebook) -> dict[str, int]:
    """Return how many pixels the output of each everyday tensor takes."""
    found = {}
    for index, name in enumerate(EVERYDAY, 2):
        output = notebook.cell(index).locator(".jp-OutputArea-output").first
        output.scroll_into_view_if_needed()
        found[name] = round(output.bounding_box()["height"])
    return found


def test_six_everyday_tensors_take_less_page_than_torch_s_repr(lab: Page, server: Server) -> None:
    """Together; one that NumPy prints with more digits than torch may take more, but none has more than its bound."""
    server.write("six.ipynb", ["0", MAKE, *EVERYDAY, "%load_ext tensornp"])
    notebook = Notebook(lab, server, "six.ipynb")
    for index in range(len(EVERYDAY) + 2):
        notebook.run_cell(index)
    torchs = heights(notebook)
    notebook.run_cell(len(EVERYDAY) + 2)
    for index in range(2, len(EVERYDAY) + 2):
        notebook.run_cell(index)
    expect(notebook.toggles()).to_have_count(1)
    ours = heights(notebook)
    print(f"pixels of page: tensornp {sum(ours.values()):,} {ours}, torch's repr {sum(torchs.values()):,} {torchs}")
    assert sum(ours.values()) < sum(torchs.values())
    line = notebook.cell(5).locator("pre").first.evaluate("(pre) => parseFloat(getComputedStyle(pre).lineHeight)")
    assert all(height < 18 * line + 120 for height in ours.values()), ours


def test_the_moving_picture_is_made_and_small(page: Page, server: Server, tmp_path: Path) -> None:
    """Every step of it happens; each frame stands long enough to be read."""
    play(page, server).save(tmp_path / "tour.gif")
    assert (tmp_path / "tour.gif").stat().st_size < MOST_BYTES
    with Image.open(tmp_path / "tour.gif") as picture:
        assert picture.n_frames >= 5
        for frame in range(picture.n_frames):
            picture.seek(frame)
            assert picture.info["duration"] >= 1500
