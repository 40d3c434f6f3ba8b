"""What a screen reader says of a page, phrase by phrase, by the virtual one of Guidepup, in Chromium.

It comes with the packages by which the JavaScript is checked, and knows of no fold: it says what is folded as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page

import tensornp as tnp
from browser.every_view import net, page_of_views

READER = Path(__file__).parents[1] / "javascript/node_modules/@guidepup/virtual-screen-reader/lib/esm/index.browser.js"
ADDRESS = "http://page.test/"
SAY = """async () => {
  const { virtual } = await import("./reader.js");
  await virtual.start({ container: document.querySelector("section") });
  while (!(await virtual.lastSpokenPhrase()).startsWith("end of region")) await virtual.next();
  return virtual.spokenPhraseLog();
}"""
CARD = """
(2, 3)
float32
cpu
requires grad
array: shared, read-only
image, histogram of 6 from -1 to 1 (all elements): most, 2, from -1 to -0.6
mean 0 ± 0.683 · -1 … 1
group
code
code
a = t.detach().numpy(); a.flags.writeable = False
end of code
float32 · exact · 0 bytes copied
shares memory, read-only: a write to the tensor is seen in the array, and NumPy cannot write
steps: detach
(2, 3) – Shape: 6 elements in 24 bytes.
float32 – Each element takes 4 bytes.
cpu – The values live in main memory.
requires grad – Autograd tracks this leaf and .grad is empty.
Of 6 elements (all elements): mean ± standard deviation (of the population), and extremes of them.
end of group
array([[-1. , -0.6 , -0.19999999], [ 0.19999999, 0.6 , 1. ]], dtype=float32)
"""
WEIGHTS = """
Sequential · 8 weights · 146 parameters · 584 bytes · all parameter, float32, cpu, grad
table
rowgroup
row, name shape bytes
columnheader, name
columnheader, shape
columnheader, bytes
end of row, name shape bytes
end of rowgroup
rowgroup
row, 0.weight (8, 4) 128 bytes
rowheader, 0.weight
cell, (8, 4)
cell, 128 bytes
end of row, 0.weight (8, 4) 128 bytes
row, 0.bias (8,) 32 bytes
rowheader, 0.bias
cell, (8,)
cell, 32 bytes
end of row, 0.bias (8,) 32 bytes
"""


@pytest.fixture
def said(page: Page) -> Callable[[str], list[str]]:
    """Return what is said of HTML, from its beginning to its end."""
    if not (READER.exists() or os.environ.get("CI")):
        pytest.skip("no virtual screen reader; python tests/javascript/check.py installs it")

    def say(html: str) -> list[str]:
        page.route(ADDRESS, lambda route: route.fulfill(body=page_of_views({"view": html}), content_type="text/html"))
        page.route(f"{ADDRESS}reader.js", lambda route: route.fulfill(path=READER, content_type="text/javascript"))
        page.goto(ADDRESS)
        first, *phrases, last = page.evaluate(SAY)
        assert (first, last) == ("region, view", "end of region, view")
        return phrases

    return say


def test_of_a_card_each_fact_is_said_once_and_in_order(said: Callable[[str], list[str]]) -> None:
    """Badges, figures, the code and what is behind each badge, the array."""
    values = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    assert said(tnp.card(values).html) == CARD.strip().splitlines()


def test_of_weights_each_row_is_said_by_its_name(said: Callable[[str], list[str]]) -> None:
    """After the sentence about all; a row begins and ends by what is in it, and each cell is said in between."""
    phrases = said(tnp.card(tnp.weights(net())).html)
    assert "\n".join(phrases).startswith(WEIGHTS.strip())
    names = [phrase.partition(", ")[2] for phrase in phrases if phrase.startswith("rowheader")]
    assert names == [name for name, _ in net().named_parameters()]
