"""An ES module in a blank page, which a real widget answers, one request at a time."""

from __future__ import annotations

import base64
import json
from typing import Any

from playwright.sync_api import Locator, Page

from tensornp.widget.part import module

PAGE = """<!doctype html>
<html lang="en"><head><title>{title}</title><style>{css}</style></head>
<body style="font-family:sans-serif"><main tabindex="0" aria-label="Notebook"><h1>{title}</h1>
{card}<div id="output"></div></main></body></html>"""
LOAD = """async ([esm, state]) => {
  const handlers = [];
  window.sent = [];
  const model = {
    get: (key) => state[key],
    send(content) { window.sent.push(structuredClone(content)); },
    on(name, callback) { handlers.push([name, callback]); },
    off(name, callback) { handlers.splice(handlers.findIndex((one) => one[1] === callback), 1); },
  };
  const fire = (event, ...given) => [...handlers].forEach(([name, callback]) => name === event && callback(...given));
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  window.reply = (content, buffers) => fire("msg:custom", content, buffers.map(bytes));
  window.set = (name, value) => { state[name] = value; fire("change:" + name); };
  // All traits of a message are there before anybody hears of one, and of what stays as it was nobody does.
  window.sync = (traits) => {
    const changed = Object.keys(traits).filter((name) => JSON.stringify(traits[name]) !== JSON.stringify(state[name]));
    Object.assign(state, traits);
    for (const name of changed) fire("change:" + name);
  };
  window.lose = () => fire("comm_live_update");
  window.count = () => handlers.length;
  const module = await import("data:text/javascript;base64," + esm);
  const widget = module.default();
  window.close_model = widget.initialize({ model });
  window.show_again = async () => {
    window.leave = await widget.render({ model, el: document.getElementById("output") });
  };
  await window.show_again();
}"""

_OF_ALL = ("layout", "tabbable", "tooltip")
"""What each widget of Jupyter has."""


_PX_OFF = """(grid) => {
  const picture = grid.querySelector("canvas"), box = picture.getBoundingClientRect();
  const [wide, tall] = [box.width / picture.width, box.height / picture.height];
  const off = [...grid.querySelectorAll("td.tensornp-cell")].flatMap((cell, k) => {
    const { left, right, top, bottom } = cell.getBoundingClientRect();
    const [x, y] = [box.left + (k % picture.width) * wide, box.top + Math.floor(k / picture.width) * tall];
    return [left - x, right - x - wide, top - y, bottom - y - tall];
  });
  return Math.max(...off.map(Math.abs));
}"""


def px_off(grid: Locator) -> float:
    """Return how far in pixels an edge of a cell is from that of its colour in the picture behind the cells."""
    return float(grid.evaluate(_PX_OFF))


class ModulePage:
    """The module `name` in a page, and the kernel's part in it: `widget`, with the traits that it has."""

    def __init__(self, page: Page, widget: Any, name: str, *, css: str = "", card: str = "", anchor: str = "") -> None:
        self.page, self.widget, self.num_answered, self._anchor = page, widget, 0, anchor
        widget.send = self._reply
        page.set_content(PAGE.format(title=name.capitalize(), css=widget._css + css, card=card))
        # Without an anchor it docks nowhere, and stands alone.
        page.evaluate(LOAD, [base64.b64encode(module(name).encode()).decode(), self._traits()])

    def _traits(self) -> dict[str, Any]:
        known = (key for key in self.widget.keys if key[0] != "_" and key not in _OF_ALL)
        return {key: getattr(self.widget, key) for key in known} | {"anchor": self._anchor}

    def _reply(self, content: dict[str, Any], buffers: Any = None) -> None:
        content = json.loads(json.dumps(content, allow_nan=False))
        self.reply(content, [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or []])

    def reply(self, content: dict[str, Any], buffers: list[str] | None = None) -> None:
        """Have the page hear something of the kernel."""
        self.page.evaluate("([content, buffers]) => window.reply(content, buffers)", [content, buffers or []])

    def set(self, name: str, value: Any) -> None:
        """Have a trait change."""
        self.page.evaluate("([name, value]) => window.set(name, value)", [name, value])

    def sync(self) -> None:
        """Have the page hear of each trait that is another one by now."""
        self.page.evaluate("traits => window.sync(traits)", self._traits())

    def sent(self) -> list[dict[str, Any]]:
        """Return what the page has sent and nobody has answered; once what it asks again where a machine is busy."""
        requests: list[dict[str, Any]] = []
        for request in self.page.evaluate("window.sent"):
            if "number" not in request or request not in requests:
                requests.append(request)
        return requests[self.num_answered :]

    def answer(self) -> None:
        """Answer the first request that has no answer yet."""
        request = self.sent()[0]
        self.num_answered += 1
        self.widget._receive(None, request, [])

    def answer_next(self) -> None:
        """Wait for the next request, as a docking one, and answer it."""
        self.page.wait_for_function(f"window.sent.length > {self.num_answered}")
        self.answer()

    def settle(self) -> None:
        """Answer until the page asks for nothing more."""
        for _ in range(50):
            if not self.sent():
                # A new size of anything is told in the next frame.
                self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                if not self.sent():
                    return
            self.answer()
        raise AssertionError("the page asks for ever")

    def nameless_rows(self) -> list[str]:
        """Return the rows of tables of which a screen reader would not be told what they are of."""
        rows = self.page.locator("tbody tr:not(:has([colspan])):not(:has(> :is(th, [role=rowheader])))")
        return rows.all_text_contents()

    def click(self, node: Locator) -> None:
        node.click()
        self.settle()

    def fill(self, field: Locator, text: str) -> None:
        field.fill(text)
        self.settle()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.settle()


class TreePage(ModulePage):
    """A module with a tree of names, its search, and a panel for the row that is open."""

    def __init__(self, page: Page, widget: Any, name: str, *, css: str = "") -> None:
        super().__init__(page, widget, name, css=css)
        self.grid = page.get_by_role("treegrid")
        self.search = page.get_by_role("textbox", name="Search the names")
        self.panel = page.locator(".tensornp-panel")
        self.settle()

    def row(self, name: str) -> Locator:
        return self.grid.locator("tbody tr").filter(has=self.page.get_by_text(name, exact=True)).first

    def names(self) -> list[str]:
        return self.grid.locator("tbody .tensornp-name-text:visible").all_text_contents()

    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.querySelector('bdi')?.textContent ?? ''")
