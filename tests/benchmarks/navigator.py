"""The time from a key in the navigator, and from one in the search of the weights, until what it asks for is painted.

Taken from a trace of Chromium's: from the event of the key to the first paint after the page has the new window, of
which a mark of the page's tells.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from side_by_side import Figure, Spread

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser.lab import Notebook, Server

MOVE_AT_95_S, LETTER_S = 0.06, 0.1
SIZE_CLAIM = 1.3
SHAPES = {"10,000": (200, 50), "500,000,000": (20_000, 25_000)}
UNCOUNTED = 5
NUM_WEIGHTS = 200_000
CELLS = [
    "%load_ext tensornp\nimport torch",
    *(f"t{i} = torch.randint(-99, 99, {shape}, dtype=torch.int8)\nt{i}" for i, shape in enumerate(SHAPES.values())),
    "z = torch.zeros(1)\n"
    f"d = {{f'layers.{{i // 10}}.part{{i % 10}}.weight': z for i in range({NUM_WEIGHTS})}}\n%weights d",
]
# What has been put into the page is told by a mark, which the trace has among its events.
WATCH = """(node) => {
  new MutationObserver(() => performance.mark("tensornp-answered")).observe(node, {
    childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ["aria-rowindex"],
  });
}"""
CATEGORIES = ["devtools.timeline", "blink.user_timing", "disabled-by-default-devtools.timeline"]


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield figures from key to paint: the median and the 95th percentile."""
    times = _measured(30 if quick else 100)
    if not times:
        yield "There is no Chromium."
        return
    small, large = (f"a move in {numel} elements" for numel in SHAPES)
    claims = {small: (None, MOVE_AT_95_S), large: (None, MOVE_AT_95_S), _TYPING: (LETTER_S, None)}
    for name, values in times.items():
        of = f"from key to paint: {name}"
        yield Figure(of, Spread.of(values), at_most=claims[name][0])
        yield Figure(f"{of}, at 95%", Spread.of([_share(values, 0.95)]), at_most=claims[name][1])
    medians = [Spread.of([_share(times[name], 0.5)]) for name in (large, small)]
    times_as_long = Spread.of([medians[0].median / medians[1].median])
    yield Figure(f"the median of {large}", medians[0], "s", small, medians[1], times_as_long, SIZE_CLAIM)


_TYPING = f"a letter in the search of {NUM_WEIGHTS:,} weights"


def _share(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _measured(num_keys: int) -> dict[str, list[float]]:
    """Return the seconds of each, by what was done."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = os.environ.get("TENSORNP_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        return {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        server = Server(Path(folder))
        try:
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            server.write("moves.ipynb", CELLS)
            notebook = Notebook(page, server, "moves.ipynb")
            return dict(_times(browser, page, notebook, num_keys))
        finally:
            server.stop()
            browser.close()


def _times(browser: Browser, page: Page, notebook: Notebook, num_keys: int) -> Iterator[tuple[str, list[float]]]:
    notebook.run_cell(0)
    for i, numel in enumerate(SHAPES, 1):
        notebook.run_cell(i)
        cell = notebook.cell(i)
        cell.get_by_role("button", name="Values").click()
        grid = cell.get_by_role("grid")
        first = grid.locator("td[tabindex='0']")
        expect(first).to_be_visible()
        page.wait_for_timeout(1000)
        first.focus()
        # Every one of these asks for another window.
        yield (
            f"a move in {numel} elements",
            _keys(browser, page, grid, (["PageDown"] * 5 + ["PageUp"] * 5) * (num_keys // 10 + 1)),
        )
        cell.get_by_role("button", name="Values").click()
    notebook.run_cell(len(CELLS) - 1)
    cell = notebook.cell(len(CELLS) - 1)
    tree = cell.get_by_role("treegrid")
    expect(tree.locator("tbody tr").first).to_be_visible()
    page.wait_for_timeout(1000)
    cell.get_by_label("Search the names").focus()
    letters = [*"part7.weight", *["Backspace"] * 12] * (num_keys // 24 + 1)
    yield _TYPING, _keys(browser, page, tree, letters)


def _keys(browser: Browser, page: Page, watched: Locator, keys: list[str]) -> list[float]:
    """Press keys one after the other, and return the seconds until each is answered and painted."""
    watched.evaluate(WATCH)
    browser.start_tracing(page=page, categories=CATEGORIES)
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(250)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return _key_to_paint(events)[UNCOUNTED:]


def _key_to_paint(events: list[dict[str, Any]]) -> list[float]:
    """Return for each key the seconds to the end of the first paint after the last change that it has brought."""
    pressed = sorted(
        one["ts"] for one in events
        if one["name"] == "EventDispatch" and one.get("args", {}).get("data", {}).get("type") == "keydown"
    )  # fmt: skip
    marks = sorted(one["ts"] for one in events if one["name"] == "tensornp-answered")
    paints = sorted(one["ts"] + one.get("dur", 0) for one in events if one["name"] in ("Paint", "Commit"))
    times = []
    for start, end in zip(pressed, [*pressed[1:], float("inf")], strict=True):
        answered = [mark for mark in marks if start < mark < end]
        painted = next((paint for paint in paints if answered and paint > answered[-1]), None)
        if painted is not None:
            times.append((painted - start) / 1e6)
    return times
