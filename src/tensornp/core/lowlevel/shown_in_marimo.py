"""What each record shows in marimo, by its protocols of display; the renderers are above all records."""

from __future__ import annotations

from typing import Any


def mime_of(record: Any) -> tuple[str, str]:
    """Return what marimo shows of a record, as its `_mime_`."""
    import tensornp

    return tensornp._mime_of(record)


class _Shown:
    """What a record shows as that marimo would show as a list or a tuple, whatever its `_mime_` says."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def _mime_(self) -> tuple[str, str]:
        return mime_of(self._record)


def display_of(record: Any) -> _Shown:
    """Return what marimo shows in the place of a record that is a list or a tuple, as its `_display_`."""
    return _Shown(record)
