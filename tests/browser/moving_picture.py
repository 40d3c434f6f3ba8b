"""Make the README's moving pictures in a real JupyterLab: `python tests/browser/moving_picture.py`.

A tensor: show, toggle, bind, a write by NumPy, and the card that tells it. A stranger's file: open, scan, the NaN
named, and one click into it. What happens here is what a user would do.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.lab import Notebook, Server

IMAGES = Path(__file__).parents[2] / ".github" / "images"
WEIGHTS = ["%load_ext tensornp", "%weights stranger.pt"]
CELLS = [
    "%load_ext tensornp\nimport torch\n\n"
    "x = torch.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)\ny = x.exp()",
    "y",
    "y_np[0, 0] = 100                     # NumPy writes, and torch does not see it",
    "y",
    "y.sum().backward(); x.grad           # 100, and it should be 2.7183",
]
NUM_COLOURS = 128


class Film:
    """Frames of one place of the page, each with the time that it stands."""

    def __init__(self, page: Page, clip: dict[str, float]) -> None:
        self._page, self._clip = page, clip
        self._frames: list[Image.Image] = []
        self._times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Add what the page shows now."""
        shot = Image.open(io.BytesIO(self._page.screenshot(clip=self._clip)))
        # One palette for all frames: what does not move then takes no bytes.
        self._frames.append(shot.convert("RGB").quantize(NUM_COLOURS, dither=Image.Dither.NONE))
        self._times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Write the picture, which begins again at its end."""
        first, *others = self._frames
        first.save(path, save_all=True, append_images=others, duration=self._times, loop=0, optimize=True)


def play(page: Page, server: Server) -> Film:
    """Do what a user would, and film it."""
    server.write("tour.ipynb", CELLS)
    notebook = Notebook(page, server, "tour.ipynb")
    page.get_by_role("tab", name="File Browser").click()
    box = notebook.panel.locator(".jp-WindowedPanel-inner").bounding_box()
    film = Film(page, {**box, "height": 728})
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.toggles().wait_for()
    film.shoot(2500)
    notebook.radio("share").click()
    expect(notebook.cell(1).get_by_text("array: shared, writeable")).to_be_visible()
    film.shoot(3500)
    notebook.panel.get_by_role("button", name="Bind", exact=True).click()
    expect(notebook.status()).to_contain_text("bound to y_np")
    film.shoot(2500)
    notebook.run_cell(2)
    film.shoot(1500)
    notebook.run_cell(3)
    expect(notebook.cell(3).get_by_text("unseen by autograd").first).to_be_visible()
    notebook.cell(3).get_by_role("radiogroup").wait_for()
    film.shoot(4000)
    notebook.run_cell(4)
    notebook.cell(4).get_by_role("radiogroup").wait_for()
    film.shoot(4500)
    return film


class Payload:
    """What nobody wants in a file of weights."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("echo loaded",)


def write_stranger(path: Path) -> None:
    """Write a transformer's weights with one NaN, and beside them a call that loading would make."""
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(128, 4, 256)
    encoder = torch.nn.TransformerEncoder(block, 6, enable_nested_tensor=False)
    state = torch.nn.ModuleDict({"embeddings": torch.nn.Embedding(1000, 128), "encoder": encoder}).state_dict()
    state["encoder.layers.3.linear1.weight"][123, 45] = torch.nan
    torch.save({"state_dict": state, "epoch": 3, "note": Payload()}, path)


def play_weights(page: Page, server: Server) -> Film:
    """Open a stranger's file, scan it, and go to the NaN."""
    write_stranger(server.root / "stranger.pt")
    server.write("weights.ipynb", WEIGHTS)
    notebook = Notebook(page, server, "weights.ipynb")
    page.get_by_role("tab", name="File Browser").click()
    box = notebook.panel.locator(".jp-WindowedPanel-inner").bounding_box()
    film = Film(page, {**box, "height": 800})
    notebook.run_cell(0)
    notebook.run_cell(1)
    cell = notebook.cell(1)
    cell.get_by_role("treegrid").wait_for()
    film.shoot(3500)
    cell.get_by_role("button", name="Scan", exact=True).click()
    found = cell.get_by_role("button", name="1 weight has NaN")
    found.wait_for()
    film.shoot(3500)
    found.click()
    expect(cell.locator("td.tensornp-nan")).to_be_focused()
    page.wait_for_timeout(500)
    film.shoot(5000)
    return film


def main() -> None:
    """Write the pictures, and tell their sizes."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    server = Server(Path(tempfile.mkdtemp(prefix="tensornp-")))
    try:
        with sync_playwright() as playwright:
            executable = os.environ.get("TENSORNP_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            for name, width, film in (("tour", 820, play), ("weights", 1060, play_weights)):
                page = browser.new_page(viewport={"width": width, "height": 900}, device_scale_factor=1.5)
                path = IMAGES / f"{name}.gif"
                film(page, server).save(path)
                print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
                page.close()
    finally:
        server.stop()


if __name__ == "__main__":
    main()
