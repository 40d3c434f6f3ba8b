"""Whatever is shown, as text and as static HTML, each record by the renderer that bears its name.

Nothing raises.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Look
from tensornp.core.summary.view import Unshown, summary_of
from tensornp.render.layout.bundle import preformatted
from tensornp.render.layout.document import Document
from tensornp.render.simple import simple_text
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.render.views import view_of


def shown_of(obj: Any, options: DisplayOptions, look: Look | None = None, expression: str = "") -> Any:
    """Return what is rendered of `obj`: its summary, or a record as it is; None for what has no card.

    `expression` is what gives a module, where that is known.
    """
    view = view_of(obj)
    if view is None and is_module(obj):
        return _shown_of_module(obj, options, expression)
    if view is None:
        return summary_of(obj, options, look)
    if not view.summarize:
        return obj
    name, summarize = type(obj).__name__, view.summarize
    return first_that_works(
        f"the card of a {name}", lambda: _named(summarize)(obj, options), lambda reason: Unshown(name, reason)
    )


def _shown_of_module(module: Any, options: DisplayOptions, expression: str) -> Any:
    from tensornp.models.module_view import module_view

    name = type(module).__name__
    return first_that_works(
        f"the weights of a {name}",
        lambda: module_view(module, options, expression),
        lambda reason: Unshown(name, reason),
    )


def summary_text(summary: Any, max_height: int = 0) -> str:
    """Return a card or a table as plain text, of an array so many lines, or all for 0."""

    def text() -> str:
        return tensor_text(summary, max_height) if isinstance(summary, TensorSummary) else _document(summary).text()

    name = type(summary).__name__
    return first_that_works(
        f"the text of a {name}",
        text,
        lambda reason: simple_text(summary, reason),
        lambda reason: f"{name} (not shown: {reason})",
    )


def summary_html(summary: Any, options: DisplayOptions, *, anchor: str = "") -> str:
    """Return a card or a table as static HTML.

    `anchor` is the class by which a live toggle finds a card.
    """

    def html() -> str:
        if isinstance(summary, TensorSummary):
            return tensor_html(summary, options, anchor=anchor)
        return _document(summary, options).html(anchor)

    name = type(summary).__name__
    return first_that_works(f"the HTML of a {name}", html, lambda _: preformatted(summary_text(summary), anchor))


def _document(summary: Any, options: DisplayOptions | None = None) -> Document:
    view = view_of(summary)
    assert view is not None
    arguments = (options or DisplayOptions(),) if view.takes_options else ()
    made: Document = _named(f"{view.document}_document")(summary, *arguments)
    return made


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
