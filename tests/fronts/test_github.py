"""Notebooks as GitHub shows them: outputs lose all but some elements and attributes, and must not lose a word."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import nh3
import pytest
import torch
from torch import nn

import tensornp as tnp

ELEMENTS = set(
    "h1 h2 h3 h4 h5 h6 h7 h8 br b i strong em a pre code img tt div ins del sup sub p picture ol ul table thead tbody "
    "tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption figure "
    "figcaption abbr bdo cite dfn mark small source span time wbr".split()
)
ATTRIBUTES = {
    "*": set(
        "abbr align alt border colspan dir height headers id itemprop lang name open rowspan scope span start summary "
        "title valign value width aria-label aria-describedby aria-hidden".split()
    ),
    "a": {"href"},
    "img": {"src", "loading"},
}
INLINE = set("a abbr b bdi bdo cite code em i kbd mark s samp small span strong sub sup time tt var wbr".split())
NET = nn.Sequential(nn.Linear(3, 2), nn.ReLU())


def followed() -> Any:
    """Return a pass."""
    with tnp.follow() as run:
        NET(torch.ones(4, 3)).sum().backward()
    return run


SHOWN: dict[str, Callable[[], Any]] = {
    "a tensor": lambda: torch.randn(20, 30, requires_grad=True),
    "a container": lambda: {"<b>": torch.ones(3), "b": [torch.zeros(2, 2)]},
    "a module": lambda: NET,
    "weights": lambda: tnp.weights(NET),
    "a scan": lambda: tnp.weights(NET).scan(progress=False),
    "a pass": followed,
    "statistics": lambda: tnp.stats(torch.arange(100.0)),
    "a comparison": lambda: tnp.compare(torch.ones(3), torch.zeros(3)),
    "a plan": lambda: tnp.plan(torch.ones(3, requires_grad=True)),
    "facts": lambda: tnp.inspect(torch.ones(3)),
}


class Words(HTMLParser):
    """What is read of a page, words apart where an element or a blank parts them."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self._unread = "", 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Begin an element."""
        self._unread += tag in ("style", "script")
        self.text += "" if tag in INLINE else " "

    def handle_endtag(self, tag: str) -> None:
        """End one."""
        self._unread -= tag in ("style", "script")
        self.text += "" if tag in INLINE else " "

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.text += "" if self._unread else data


def words_of(page: str) -> list[str]:
    """Return the words that a page shows, in their order."""
    reader = Words()
    reader.feed(page)
    return reader.text.split()


@pytest.mark.parametrize("name", SHOWN)
def test_each_word_is_left_and_stands_apart(name: str):
    """Styles, by which badges stand apart and colours are made, go."""
    page = tnp.card(SHOWN[name]()).html
    cleaned = nh3.clean(
        page, tags=ELEMENTS, attributes=ATTRIBUTES, url_schemes={"http", "https"}, link_rel=None,
        clean_content_tags={"script", "style"},
    )  # fmt: skip
    assert "style" not in cleaned
    words = words_of(cleaned)
    assert words == words_of(page)
    facts = {"a tensor": "float32 cpu", "a container": "float32, cpu", "weights": "0.weight (2, 3) 24 bytes"}
    assert facts.get(name, "") in " ".join(words)
