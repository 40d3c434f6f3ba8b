"""Stable CSS classes of the cards and tables of a cell."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

_shown: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()


def cell_id(shell: Any) -> str | None:
    """Return what the front end calls the cell that runs, or None where it does not say."""
    try:
        found = shell.get_parent()["metadata"].get("cellId")
    except (AttributeError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


class Anchors:
    """Counts what each cell has shown; a page may hold several notebooks, and what older runs have shown."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        # What was shown before we were unloaded is still on the page.
        self._shown = _shown.setdefault(shell, Counter())

    def new(self) -> str:
        """Return the class of what the cell that runs shows next."""
        cell = cell_id(self._shell) or ""
        self._shown[cell] += 1
        # A front end may put a path into the name of a cell, which is no business of whoever reads the notebook.
        digest = hashlib.blake2s(f"{cell} {self._shown[cell]}".encode("utf-8", "replace"), digest_size=4)
        return f"tnp-{digest.hexdigest()}"
