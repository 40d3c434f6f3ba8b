"""A film in JupyterLab: a slider over its frames while a kernel is there, and all of them in the file without one."""

from __future__ import annotations

import io
import json
import re

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from browser.lab import Notebook, Server

LOAD = """%load_ext tensornp
import torch, tensornp as tnp
film = torch.zeros(1, 5, 3, 20, 30, dtype=torch.uint8)
film[0, :, 0] = torch.arange(5).view(5, 1, 1) * 50
film[..., :10, :] += 7"""


def colours(frame: Locator) -> list[tuple[int, ...]]:
    """Return what is seen in the middle of the upper and of the lower half of a frame."""
    seen = np.array(Image.open(io.BytesIO(frame.screenshot())).convert("RGB"))
    height, width = seen.shape[:2]
    return [tuple(map(int, seen[height // 4, width // 2])), tuple(map(int, seen[3 * height // 4, width // 2]))]


def expect_frame(place: Locator, t: int) -> None:
    expect(place.get_by_text(f"frame [{t}], {t + 1} of 5", exact=True)).to_be_visible()
    frame = place.get_by_role("img", name=f"frame [{t}], {t + 1} of 5")
    assert colours(frame) == [(50 * t + 7, 7, 7), (50 * t, 0, 0)]


def test_a_slider_shows_one_frame_at_a_time(lab: Page, server: Server) -> None:
    """In what `tnp.image` returns, and in a card; by keys, which the notebook does not get, and moving on."""
    server.write("film.ipynb", [LOAD, "tnp.image(film)", "film", "tnp.image(film + 1)"])
    notebook = Notebook(lab, server, "film.ipynb")
    for index in range(3):
        notebook.run_cell(index)
    for index in (1, 2):
        shown = notebook.outputs(index).first
        if index == 2:
            shown.get_by_role("button", name="Image", exact=True).click()
        slider = shown.get_by_role("slider", name="Frame")
        expect(slider).to_be_visible()
        expect_frame(shown, 0)
        slider.press("End")
        expect_frame(shown, 4)
        slider.press("ArrowLeft")
        expect_frame(shown, 3)
        expect(slider).to_have_attribute("aria-valuetext", "frame [3], 4 of 5")
    assert not [one for one in Axe().run(lab).response["violations"] if "tensornp-film" in json.dumps(one)]
    notebook.run_cell(3)
    expect(notebook.outputs(3).first.get_by_role("slider", name="Frame")).to_be_visible()
    expect(notebook.outputs(1).first.get_by_role("slider", name="Frame")).to_have_count(0)
    saved = json.loads(notebook.save().read_text(encoding="utf-8"))
    for index in (1, 3):
        (output,) = saved["cells"][index]["outputs"]
        assert "widget" not in json.dumps(list(output["data"]))
        html = "".join(output["data"]["text/html"])
        assert "1 clip, 5 frames" in html and len(re.findall("<img", html)) == 1
