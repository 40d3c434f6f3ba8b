"""A display without a shell: what a card's text and HTML are made by."""

from __future__ import annotations

import re
from html import unescape

import torch

from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.tensor.card import tensor_html, tensor_text


def display(t: torch.Tensor) -> str:
    """Make the whole card of `t`, and return its text."""
    summary = summarize(t, DisplayOptions())
    assert tensor_html(summary, DisplayOptions()).startswith("<div")
    return tensor_text(summary)


def array_in(html: str) -> str:
    """Return what the HTML of a card prints of the array: what is seen, and what is behind the fold."""
    parts = re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", "\n".join(parts)))


_FIGURES = re.compile(r"(modulus: )?(finite: )?(mean|all) |[\d,]+ (of [\d,]+ True|NaN|[+-]?Inf)|[\d,]+ of [\d,]+ shown")


def without_figures(text: str) -> str:
    """Return the text of a card without its last line, where that has the figures of the values."""
    before, _, last = text.rpartition("\n")
    return before if _FIGURES.match(last) else text
