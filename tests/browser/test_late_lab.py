"""A kernel that is far away: each message takes 100 ms to it, and 100 ms back; the last key wins, and none is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.conftest import VIEWPORT
from browser.lab import Notebook, Server, close_notebooks
from browser.test_navigator_lab import open_values, where
from browser.test_weights_lab import tree

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
WATCH = """(node) => {
  window.shown = [node.textContent];
  const look = () => node.textContent !== window.shown.at(-1) && window.shown.push(node.textContent);
  new MutationObserver(look).observe(node, { childList: true, subtree: true, characterData: true });
}"""
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


def indices(page: Page) -> list[tuple[int, ...]]:
    """Return the indices of what was shown, one after another."""
    found = (re.match(r"\[(\d+), (\d+)\]", text) for text in page.evaluate("window.shown"))
    return [tuple(map(int, one.groups())) for one in found if one]


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
    expect(notebook.status()).to_have_text("bound to kept (share)")
    seen, pressed = late.evaluate("window.modes"), iter(("view", "share", "copy", "share", "copy", "share"))
    assert all(mode in pressed for mode in seen) and seen[-1] == "share", seen
    assert late.evaluate("window.numSent") > 5


def test_keys_in_the_values_add_up_and_are_shown_in_their_order(late: Page, server: Server) -> None:
    """Farther than what is there already: no index goes back, and the last is where the keys lead."""
    _, cell = opened(late, server, "late-values.ipynb", "w")
    open_values(cell)
    cell.get_by_role("grid").locator("td[tabindex='0']").click()
    where(cell).evaluate(WATCH)
    for key in ("ArrowDown",) * 60 + ("ArrowRight",) * 40:
        late.keyboard.press(key)
    expect(where(cell)).to_have_text(re.compile(r"^\[60, 40\]  18040.0 "))
    late.wait_for_timeout(6 * LATE_MS)
    expect(where(cell)).to_have_text(re.compile(r"^\[60, 40\]  18040.0 "))
    seen = indices(late)
    assert seen == sorted(seen) and seen[-1] == (60, 40)
    for key in ("ArrowUp", "Control+End", "Control+Home", "ArrowDown"):
        late.keyboard.press(key)
    expect(where(cell)).to_have_text(re.compile(r"^\[1, 0\]  300.0 "))
    late.wait_for_timeout(6 * LATE_MS)
    expect(where(cell)).to_have_text(re.compile(r"^\[1, 0\]  300.0 "))


def test_keys_in_the_tree_of_weights_add_up(late: Page, server: Server) -> None:
    """What is typed last is what is searched, each line is passed, and the weight that is opened is the one below."""
    _, cell = opened(late, server, "late-tree.ipynb", "%weights state")
    rows = tree(cell).locator("tbody tr")
    search = cell.get_by_label("Search the names")
    search.focus()
    late.keyboard.type("layers.29")
    late.keyboard.press("Backspace")
    late.keyboard.press("Backspace")
    late.keyboard.type("1")
    late.wait_for_timeout(8 * LATE_MS)
    expect(search).to_have_value("layers.1")
    expect(cell.get_by_role("treegrid")).to_have_attribute("aria-rowcount", str(1 + 111))
    search.press("ArrowDown")
    focused = cell.get_by_role("treegrid").locator("tbody tr:focus bdi").first
    expect(focused).to_have_text("layers.1.weight")
    for _ in range(45):
        late.keyboard.press("ArrowDown")
    expect(focused).to_have_text("layers.134.weight")
    late.keyboard.press("ArrowUp")
    late.keyboard.press("Enter")
    card = cell.locator(".tensornp-weight")
    expect(card).to_contain_text("layers.133.weight")
    expect(card.locator("pre")).to_contain_text("133.")
    expect(rows.first).to_be_visible()
