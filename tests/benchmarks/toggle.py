"""The time from a click on the toggle until the card says what it means, beside the least that any widget takes.

A kernel answers with several small messages. Jupyter Server (2.x) leaves Nagle's algorithm on, so that the second often
waits until the browser acknowledges the first, for about 40 ms on Linux; the echo shows how much of a trip that is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright
from side_by_side import Figure, timed

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser.lab import Notebook, Server

UNCOUNTED_CLICKS = 2
ECHO = '''
import anywidget
import traitlets

class Echo(anywidget.AnyWidget):
    """A button that shows the number which the kernel sends back."""

    _esm = """
    export default {
      render({ model, el }) {
        const button = document.createElement("button");
        button.className = "echo";
        button.addEventListener("click", () => {
          model.set("asked", model.get("asked") + 1);
          model.save_changes();
        });
        model.on("change:answered", () => { button.textContent = model.get("answered"); });
        el.append(button);
      },
    };
    """
    asked = traitlets.Int().tag(sync=True)
    answered = traitlets.Int().tag(sync=True)

    @traitlets.observe("asked")
    def _answer(self, change):
        self.answered = change.new

Echo()
'''
CELLS = ["%load_ext tensornp\nimport torch", "t = torch.arange(12.0).view(3, 4)\nt", ECHO]
# Clicks on both in turn, from the click until the toggle has painted the mode and the echo has come back.
CLICKS = """
async (clicks) => {
  const find = (selector) => document.querySelector(selector);
  const modes = ["copy", "view"].map((mode) => find(`.tensornp-modes input[value=${mode}]`));
  const face = find(".tensornp-face");
  const trip = (button, watched) => new Promise((resolve) => {
    const before = watched.textContent;
    const observer = new MutationObserver(() => {
      if (watched.textContent === before) return;
      observer.disconnect();
      resolve(performance.now() - start);
    });
    observer.observe(watched, { attributes: true, childList: true, subtree: true, characterData: true });
    const start = performance.now();
    button.click();
  });
  const rest = () => new Promise((resolve) => setTimeout(resolve, 100));
  const times = { painted: [], echo: [] };
  for (let i = 0; i < clicks; i += 1) {
    times.painted.push(await trip(modes[i % 2], face));
    await rest();
    const echo = find(".echo");
    times.echo.push(await trip(echo, echo));
    await rest();
  }
  return times;
}
"""


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield figures of round trips in JupyterLab with Chromium: page, server, kernel, server, page."""
    clicks = 10 if quick else 30
    names = (os.environ.get("TENSORNP_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        server = Server(Path(folder))
        try:
            times = _round_trips(browser.new_page(viewport={"width": 1200, "height": 900}), server, clicks)
        finally:
            server.stop()
            browser.close()
    seconds = {name: [one / 1000 for one in taken] for name, taken in times.items()}
    echo = "a bare widget has its echo from the kernel"
    yield timed("from a click until the card shows the mode", seconds["painted"], echo, seconds["echo"])


def _round_trips(page: Page, server: Server, clicks: int) -> dict[str, list[float]]:
    """Return the milliseconds of each click, without the first ones, which meet code that has not run yet."""
    server.write("toggle.ipynb", CELLS)
    notebook = Notebook(page, server, "toggle.ipynb")
    notebook.run_all()
    expect(page.locator(".tensornp-modes input")).to_have_count(3)
    expect(page.locator(".echo")).to_be_visible()
    times = page.evaluate(CLICKS, clicks + UNCOUNTED_CLICKS)
    return {name: milliseconds[UNCOUNTED_CLICKS:] for name, milliseconds in times.items()}
