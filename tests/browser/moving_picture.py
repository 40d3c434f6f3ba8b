"""Make the README's moving picture in a real JupyterLab: `python tests/browser/moving_picture.py`.

A user shows a tensor, chooses share, binds the array and writes with NumPy. The next card warns.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.lab import Notebook, Server

IMAGES = Path(__file__).parents[2] / ".github" / "images"
CELLS = [
    "%load_ext tensornp\nimport torch\n\n"
    "x = torch.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)\ny = x.exp()",
    "y",
    "y_np[0, 0] = 100      # NumPy writes, and torch does not notice",
    "y",
]
NUM_COLOURS = 128
HEIGHT = 400


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
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.toggles().wait_for()
    top = notebook.cell(1).bounding_box()
    film = Film(page, {"x": top["x"], "y": top["y"] - 6, "width": top["width"], "height": HEIGHT})
    film.shoot(2000)
    notebook.radio("share").click()
    expect(notebook.cell(1).get_by_text("array: shared, writeable")).to_be_visible()
    film.shoot(2500)
    notebook.panel.get_by_role("button", name="Bind", exact=True).click()
    expect(notebook.status()).to_contain_text("bound to y_np")
    film.shoot(1500)
    notebook.run_cell(2)
    film.shoot(1500)
    notebook.run_cell(3)
    expect(notebook.cell(3).get_by_text("unseen by autograd").first).to_be_visible()
    notebook.cell(3).get_by_role("radiogroup").wait_for()
    film.shoot(4000)
    return film


def main() -> None:
    """Write the picture, and print its size."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    server = Server(Path(tempfile.mkdtemp(prefix="tensornp-")))
    try:
        with sync_playwright() as playwright:
            executable = os.environ.get("TENSORNP_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 820, "height": 900}, device_scale_factor=1.5)
            path = IMAGES / "tour.gif"
            play(page, server).save(path)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
