"""A module as the value of a cell.

The folded table of its weights, and what it prints itself one fold away.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tensornp.core.lowlevel.text import legible
from tensornp.models.module_view import ModuleView
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.scan.findings import by_kind
from tensornp.render.layout.document import Alarm, Both, Document, Lines
from tensornp.render.layout.style import SMALL_TEXT, array_style
from tensornp.render.layout.words import listed
from tensornp.render.models.weights import MAX_NAMED, weights_document


def module_document(view: ModuleView) -> Document:
    """Return the table of a module's weights, which a live tree can replace."""
    alarms = {name: one.text for name, one in view.alarms.items()}
    weights = weights_document(view.explorer, alarms, tuple(_said(view)))
    said = escape(legible(view.text, keep="\n"))
    folded = (
        f'<details style="{SMALL_TEXT}"><summary>as torch prints it</summary>'
        f'<pre style="{array_style()}">{said}</pre></details>'
    )
    return Document((*weights.parts, Both("print(...) shows it as torch does", folded) if said else Both()))


def _said(view: ModuleView) -> Iterator[Alarm | Lines]:
    """Yield sentences on non-finite values and on weights not read."""
    for kind, names in by_kind((name, one.findings) for name, one in view.alarms.items()).items():
        shown = listed([cut(name, MAX_SHOWN) or "''" for name in names], MAX_NAMED)
        yield Alarm(kind.with_scope(len(names)), f": {shown}")
    if partly_read(view):
        yield Lines((partly_read(view),))


def partly_read(view: ModuleView) -> str:
    """Return how many weights were read; empty if all were."""
    if view.num_read == view.num_floats or not view.num_read:
        return ""
    return f"NaN was looked for in {view.num_read:,} of {view.num_floats:,} weights; a scan looks in all"
