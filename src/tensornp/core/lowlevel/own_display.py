"""What each record shows where no printers are: in marimo by its protocols of display, in others by `_repr_html_`.

The renderers are above all records.
"""

from __future__ import annotations

from typing import Any


def mime_of(record: Any) -> tuple[str, str]:
    """Return what marimo shows of a record, as its `_mime_`."""
    import tensornp

    return tensornp._mime_of(record)


def html_of(record: Any) -> str:
    """Return the HTML of a record, as its `_repr_html_`, which sphinx-gallery and Jupyter without printers ask for."""
    return mime_of(record)[1]


class _Shown:
    """What a record shows as that marimo would show as a list or a tuple, whatever its `_mime_` says."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def _mime_(self) -> tuple[str, str]:
        return mime_of(self._record)


def display_of(record: Any) -> _Shown:
    """Return what marimo shows in the place of a record that is a list or a tuple, as its `_display_`."""
    return _Shown(record)
