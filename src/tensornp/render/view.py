"""Whatever is shown, as text and as static HTML: each record by the renderer that bears its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.lowlevel.attributes import class_name
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.memory.aliases import Aliases
from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.container import ContainerSummary
from tensornp.core.summary.module import ModuleSummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.view import Summary, Unshown
from tensornp.core.tensor.facts import TensorInfo
from tensornp.render.aliases import aliases_html, aliases_text
from tensornp.render.bundle import preformatted
from tensornp.render.card import tensor_html, tensor_text
from tensornp.render.container import container_html, container_text, module_html, module_text
from tensornp.render.info import info_html, info_text
from tensornp.render.receipt import plan_html
from tensornp.render.scan_table import scan_table_html, scan_table_text
from tensornp.render.simple import simple_text, unshown_html, unshown_text
from tensornp.render.weights import weights_html, weights_text
from tensornp.render.weights_comparison import weights_comparison_html, weights_comparison_text
from tensornp.trees.explorer import WeightsExplorer
from tensornp.trees.scan_table import ScanTable
from tensornp.trees.weights_comparison import WeightsComparison

Shown = Summary | WeightsExplorer | ScanTable | WeightsComparison
_TEXT: dict[type, Callable[[Any], str]] = {
    TensorSummary: tensor_text,
    ModuleSummary: module_text,
    ContainerSummary: container_text,
    ConversionPlan: str,
    TensorInfo: info_text,
    Aliases: aliases_text,
    WeightsExplorer: weights_text,
    ScanTable: scan_table_text,
    WeightsComparison: weights_comparison_text,
    Unshown: unshown_text,
}
_TABLES: dict[type, Callable[[Any], str]] = {
    ModuleSummary: module_html,
    ContainerSummary: container_html,
    ConversionPlan: plan_html,
    TensorInfo: info_html,
    Aliases: aliases_html,
    WeightsExplorer: weights_html,
    ScanTable: scan_table_html,
    WeightsComparison: weights_comparison_html,
    Unshown: unshown_html,
}


def summary_text(summary: Shown) -> str:
    """Return a card or a table as plain text; it never raises."""
    name = class_name(type(summary))
    return first_that_works(
        f"the text of a {name}",
        lambda: _TEXT[type(summary)](summary),
        lambda reason: simple_text(summary, reason),
        lambda reason: f"{name} (not shown: {reason})",
    )


def summary_html(summary: Shown, options: DisplayOptions, *, anchor: str = "") -> str:
    """Return a card or a table as static HTML; it never raises.

    `anchor` is the class by which a live toggle finds a card.
    """

    def html() -> str:
        if isinstance(summary, TensorSummary):
            return tensor_html(summary, options, anchor=anchor)
        return _TABLES[type(summary)](summary)

    name = class_name(type(summary))
    return first_that_works(f"the HTML of a {name}", html, lambda _: preformatted(summary_text(summary), anchor))
