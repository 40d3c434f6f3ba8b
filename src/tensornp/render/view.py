"""Whatever is shown, as text and as static HTML: each record by the renderer that bears its name."""

from __future__ import annotations

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.memory.aliases import Aliases
from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.module import ModuleSummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.view import Summary
from tensornp.core.tensor.facts import TensorInfo
from tensornp.render.aliases import aliases_html, aliases_text
from tensornp.render.card import tensor_html, tensor_text
from tensornp.render.container import container_html, container_text, module_html, module_text
from tensornp.render.info import info_html, info_text
from tensornp.render.receipt import plan_html


def summary_text(summary: Summary) -> str:
    """Return a card or a table as plain text."""
    if isinstance(summary, TensorSummary):
        return tensor_text(summary)
    if isinstance(summary, ModuleSummary):
        return module_text(summary)
    if isinstance(summary, ConversionPlan):
        return str(summary)
    if isinstance(summary, TensorInfo):
        return info_text(summary)
    return aliases_text(summary) if isinstance(summary, Aliases) else container_text(summary)


def summary_html(summary: Summary, options: DisplayOptions, *, anchor: str = "") -> str:
    """Return a card or a table as static HTML; `anchor` is the class by which a live toggle finds a card."""
    if isinstance(summary, TensorSummary):
        return tensor_html(summary, options, anchor=anchor)
    if isinstance(summary, ModuleSummary):
        return module_html(summary)
    if isinstance(summary, ConversionPlan):
        return plan_html(summary)
    if isinstance(summary, TensorInfo):
        return info_html(summary)
    return aliases_html(summary) if isinstance(summary, Aliases) else container_html(summary)
