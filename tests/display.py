"""A display without a shell: what a card's text and HTML are made by."""

from __future__ import annotations

import torch

from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.card import tensor_html, tensor_text


def display(t: torch.Tensor) -> str:
    """Make the whole card of `t`, and return its text."""
    summary = summarize(t, DisplayOptions())
    assert tensor_html(summary, DisplayOptions()).startswith("<div")
    return tensor_text(summary)
