"""Cards in a front end without options and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.view import Unshown
from tensornp.render.view import shown_of, summary_text
from tensornp.session.ledger import Ledger


class Names(NamedTuple):
    """A session that knows variables alone."""

    names: Mapping[str, Any]
    cell: str = ""
    source: str = ""


def summary_in(names: Mapping[str, Any], obj: Any, expression: str = "") -> Any:
    """Return what is rendered of `obj`, with what is told of its memory by the variables of the program.

    `expression` is what gives a module.
    """
    options = DisplayOptions()
    look = Ledger(Names(names), lambda: options).surroundings_of
    return first_that_works(
        "a display",
        lambda: shown_of(obj, options, look, expression),
        lambda reason: Unshown(_class_name(obj), reason),
    )


def text_in(names: Mapping[str, Any], obj: Any) -> str:
    """Return the card of `obj` as text; a terminal folds long arrays."""
    return summary_text(summary_in(names, obj), DisplayOptions().max_height)


def _class_name(obj: Any) -> str:

    return type(obj).__name__
