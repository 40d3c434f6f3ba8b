"""Tables for pandas, which is not needed otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensornp.errors import MissingLibraryError


def frame_of(names: Iterable[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a DataFrame with a row for each name; MissingLibraryError without pandas."""
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingLibraryError("a frame needs pandas; install it, or take the mapping as it is") from None
    return pandas.DataFrame(list(rows), columns=list(columns), index=pandas.Index(list(names), name="name"))
