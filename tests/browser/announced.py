"""What a screen reader is told of what changes on a page, by its live regions."""

from __future__ import annotations

from playwright.sync_api import Page

LISTEN = """() => {
  window.announced = [];
  const regions = "[aria-live=polite], [role=status], output";
  new MutationObserver((changes) => {
    const elements = changes.map(({ target }) => (target instanceof Element ? target : target.parentElement));
    const nodes = elements.map((node) => node?.closest(regions));
    for (const node of new Set(nodes)) if (node?.textContent) window.announced.push(node.textContent);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""
WAITING = "waiting for the kernel …"


class Announced:
    """What is announced on a page from now on."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.evaluate(LISTEN)

    def __call__(self) -> list[str]:
        """Return what was announced since the last call, but that a busy machine is waited for."""
        return [text for text in self._page.evaluate("window.announced.splice(0)") if text != WAITING]
