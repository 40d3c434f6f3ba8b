"""Whatever is shown, as text and as static HTML: each summary by the renderer that bears its name."""

from __future__ import annotations

from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.module import ModuleSummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.view import Summary
from tensornp.render.card import tensor_html, tensor_text
from tensornp.render.container import container_html, container_text, module_html, module_text


def summary_text(summary: Summary) -> str:
    """Return a card or a table as plain text."""
    if isinstance(summary, TensorSummary):
        return tensor_text(summary)
    return module_text(summary) if isinstance(summary, ModuleSummary) else container_text(summary)


def summary_html(summary: Summary, options: DisplayOptions, *, anchor: str = "") -> str:
    """Return a card or a table as static HTML; `anchor` is the class by which a live toggle finds a card."""
    if isinstance(summary, TensorSummary):
        return tensor_html(summary, options, anchor=anchor)
    return module_html(summary) if isinstance(summary, ModuleSummary) else container_html(summary)
