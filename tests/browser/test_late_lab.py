"""A kernel that is far away: each message takes 100 ms to it, and 100 ms back; the last key wins, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.conftest import VIEWPORT
from browser.lab import Notebook, Server, close_notebooks

LATE_MS = 100
LATE = """window.numSent = 0;
window.WebSocket = class extends WebSocket {
  send(data) {
    window.numSent += 1;
    setTimeout(() => this.readyState === WebSocket.OPEN && super.send(data), LATE);
  }
  set onmessage(heard) { super.onmessage = heard && ((event) => setTimeout(() => heard.call(this, event), LATE)); }
  get onmessage() { return super.onmessage; }
};""".replace("LATE", str(LATE_MS))
LOAD = """%load_ext tensornp
import torch
w = torch.arange(200 * 300.).reshape(200, 300)
state = {f"layers.{i}.weight": torch.full((3,), float(i)) for i in range(300)}"""


@pytest.fixture(scope="module")
def _late(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=VIEWPORT)
    context.add_init_script(LATE)
    yield context.new_page()
    context.close()


@pytest.fixture
def late(_late: Page) -> Iterator[Page]:
    """A page of JupyterLab whose kernels are far away."""
    yield _late
    close_notebooks(_late)


def opened(page: Page, server: Server, name: str, shown: str) -> tuple[Notebook, Locator]:
    """Show something in a notebook of that name, whose kernel answers late."""
    server.write(name, [LOAD, shown])
    notebook = Notebook(page, server, name)
    notebook.run_cell(0)
    notebook.run_cell(1)
    return notebook, notebook.cell(1)


def test_the_last_of_several_modes_is_shown_and_bound(late: Page, server: Server) -> None:
    """No answer to a key before takes it back."""
    notebook, card = opened(late, server, "late-toggle.ipynb", "w")
    expect(notebook.radio("view")).to_be_visible()
    late.evaluate("""() => {
      window.modes = [];
      const look = () => {
        const mode = document.querySelector("[role=radio][aria-checked=true], input[type=radio]:checked");
        const told = mode && (mode.getAttribute("aria-label") || mode.value || mode.textContent);
        if (told && told !== window.modes.at(-1)) window.modes.push(told);
        requestAnimationFrame(look);
      };
      look();
    }""")
    notebook.radio("view").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight", "ArrowLeft"):
        late.keyboard.press(key)
    expect(card.get_by_text("array: shared, writeable", exact=True).filter(visible=True)).to_have_count(1)
    expect(card.locator(".tensornp-unconfirmed")).to_have_count(0)
    late.wait_for_timeout(8 * LATE_MS)
    expect(notebook.radio("share")).to_be_checked()
    name = notebook.panel.get_by_role("textbox", name="Name to bind the array to")
    name.fill("kept")
    name.press("Enter")
    expect(notebook.status()).to_have_text("bound: kept (share)")
    seen, pressed = late.evaluate("window.modes"), iter(("view", "share", "copy", "share", "copy", "share"))
    assert all(mode in pressed for mode in seen) and seen[-1] == "share", seen
    assert late.evaluate("window.numSent") > 5
