"""Make the README's pictures in a real JupyterLab: `python tests/browser/screenshots.py`."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
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


TOUR = [
    "%load_ext tensornp\nimport copy\nimport torch\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
    "model = nn.Sequential(nn.Linear(384, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))\n"
    "x, before = torch.randn(32, 384), copy.deepcopy(model)\n"
    "model(x).square().mean().backward()\ntorch.optim.SGD(model[:1].parameters(), lr=0.1).step()\n"
    "broken = copy.deepcopy(model)\nwith torch.no_grad(): broken[3].weight[2, 5] = torch.nan",
    "model[0].weight",
    "broken",
    "%tensordiff before model",
    "%%follow\nloss = broken(x).square().mean()",
]
FRAME_MS = 3500
FRAME_PX = 860, 400


def shoot_tour(browser: Browser, server: Server) -> Path:
    """Make the moving picture: a frame for each cell but the first, with what it shows."""
    server.write("tour.ipynb", TOUR)
    page = browser.new_page(viewport={"width": 960, "height": 3000}, device_scale_factor=1.5)
    notebook = Notebook(page, server, "tour.ipynb")
    page.get_by_role("tab", name="File Browser").click()
    frames = []
    for number in range(len(TOUR)):
        notebook.run_cell(number)
        notebook.page.keyboard.press("Escape")
        # Its live part comes after it.
        page.wait_for_timeout(3000)
        box = notebook.cell(number).bounding_box()
        clip = {"x": box["x"], "y": box["y"], "width": FRAME_PX[0], "height": min(box["height"], FRAME_PX[1])}
        shot = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
        frame = Image.new("RGB", (int(FRAME_PX[0] * 1.5), int(FRAME_PX[1] * 1.5)), "white")
        frame.paste(shot)
        frames += [frame] * bool(number)
    path = IMAGES / "tour.gif"
    first, *rest = (one.quantize(64, dither=Image.Dither.NONE) for one in frames)
    first.save(path, save_all=True, append_images=rest, duration=FRAME_MS, loop=0, optimize=True)
    page.close()
    server.end_sessions()
    return path


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
    IMAGES.mkdir(parents=True, exist_ok=True)
    server = Server(Path(tempfile.mkdtemp(prefix="tensornp-")))
    try:
        with sync_playwright() as playwright:
            executable = os.environ.get("TENSORNP_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            for dark in (False, True):
                print(shoot(browser, server, dark=dark))
            print(shoot_tour(browser, server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
