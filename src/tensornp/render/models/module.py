"""A module as the value of a cell: the folded table of its weights, and what it prints itself one fold away."""

from __future__ import annotations

from html import escape

from tensornp.core.lowlevel.legible import legible
from tensornp.models.module_view import ModuleView
from tensornp.render.layout.document import Both, Document
from tensornp.render.layout.style import SMALL_TEXT, array_style
from tensornp.render.models.weights import weights_document


def module_document(view: ModuleView) -> Document:
    """Return the weights, of which a live tree takes the place of the table; a text says where the module's own is."""
    weights = weights_document(view.explorer, view.alarms)
    said = escape(legible(view.text, keep="\n"))
    folded = (
        f'<details style="{SMALL_TEXT}"><summary>as torch prints it</summary>'
        f'<pre style="{array_style()}">{said}</pre></details>'
    )
    return Document((*weights.parts, Both("print(...) shows it as torch does", folded) if said else Both()))
