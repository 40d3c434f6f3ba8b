"""Make the README's picture, light and dark, in a real JupyterLab: `python tests/browser/screenshots.py`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.lab import Notebook, Server

IMAGES = Path(__file__).parents[2] / ".github" / "images"
CELLS = [
    "%load_ext tensornp\nimport torch\n\ntorch.manual_seed(0)\n"
    "layer = torch.nn.Linear(384, 384)\nhidden = torch.linspace(0, 1, 768).view(2, 384)\n"
    "w_np = layer.weight.detach().numpy()",
    "layer(hidden)[:, :4].bfloat16()",
    "layer.weight",
]


def shoot_card(notebook: Notebook, path: Path) -> None:
    """Toggle nothing, and photograph the notebook alone."""
    page = notebook.page
    page.get_by_role("radiogroup").wait_for()
    page.keyboard.press("Escape")
    box = notebook.panel.locator(".jp-WindowedPanel-inner").bounding_box()
    end = notebook.cell(len(CELLS) - 1).bounding_box()
    page.screenshot(path=path, clip={**box, "height": end["y"] + end["height"] - box["y"] + 8})


def shoot(browser: Browser, server: Server, *, dark: bool) -> Path:
    """Run the cells in one theme, and make the picture."""
    server.write("card.ipynb", CELLS)
    page = browser.new_page(viewport={"width": 1060, "height": 900}, device_scale_factor=2)
    notebook = Notebook(page, server, "card.ipynb", dark=dark)
    page.get_by_role("tab", name="File Browser").click()
    notebook.run_all()
    path = IMAGES / f"card-{'dark' if dark else 'light'}.png"
    shoot_card(notebook, path)
    page.close()
    server.end_sessions()
    return path


def main() -> None:
    """Write all images."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    server = Server(Path(tempfile.mkdtemp(prefix="tensornp-")))
    try:
        with sync_playwright() as playwright:
            executable = os.environ.get("TENSORNP_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            for dark in (False, True):
                print(shoot(browser, server, dark=dark))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
