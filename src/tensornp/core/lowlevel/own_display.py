"""Display records in marimo and in other front ends without a printer of tensornp."""

from __future__ import annotations

from typing import Any


def mime_of(record: Any) -> tuple[str, str]:
    """Return MIME type and HTML of a record, as its `_mime_` for marimo."""
    import tensornp

    return tensornp._mime_of(record)


def html_of(record: Any) -> str:
    """Return the HTML of a record, as its `_repr_html_` for Jupyter and sphinx-gallery."""
    return mime_of(record)[1]


def pretty(record: Any, printer: Any, cycle: bool) -> None:
    """Print a record as a block below its card, as its `_repr_pretty_` for IPython."""
    for i, line in enumerate(str(record).split("\n")):
        if i:
            printer.break_()
        printer.text(line)


class _Display:
    """Wrapper that stops marimo from rendering a record as a plain list."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def _mime_(self) -> tuple[str, str]:
        return mime_of(self._record)


def display_of(record: Any) -> _Display:
    """Return the wrapper of a record that is a list or a tuple, as its `_display_`."""
    return _Display(record)
