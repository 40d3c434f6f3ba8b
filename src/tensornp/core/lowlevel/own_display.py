"""Display records in marimo and in other front ends without a printer of tensornp."""

from __future__ import annotations

import functools
import types
from typing import Any


def mime_of(record: Any) -> tuple[str, str]:
    """Return MIME type and HTML of a record, as its `_mime_` for marimo."""
    import tensornp

    return tensornp._mime_of(record)


def html_of(record: Any) -> str:
    """Return the HTML of a record, as its `_repr_html_` for Jupyter and sphinx-gallery."""
    return mime_of(record)[1]


def display_of(record: Any) -> Any:
    """Return a wrapper that stops marimo from rendering a record as a plain list, as its `_display_`."""
    return types.SimpleNamespace(_mime_=functools.partial(mime_of, record))
