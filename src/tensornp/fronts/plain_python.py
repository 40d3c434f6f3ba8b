"""Print cards at the prompt of plain Python."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ours import has_own_display, is_ours, text_in, unshown_text

_standing: list[_DisplayHook] = []


class _DisplayHook:
    """Prints cards, and passes all other values to the hook that it replaces."""

    def __init__(self, before: Callable[[Any], Any]) -> None:
        self.before = before
        self.is_on = True

    def __call__(self, value: Any) -> None:
        """Print `value` and name it ``_``, as Python's own hook does."""
        text = first_that_works("a display", lambda: self._text_of(value), lambda reason: unshown_text(value, reason))
        if text is None:
            self.before(value)
            return
        builtins._ = None  # type: ignore[attr-defined]
        # Characters that the encoding lacks are escaped, as in Python's own hook.
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding))
        builtins._ = value  # type: ignore[attr-defined]

    def _text_of(self, value: Any) -> str | None:
        if not self.is_on or value is None or not is_ours(value, has_own_display):
            return None
        return text_in(vars(sys.modules["__main__"]), value)


def register() -> None:
    """Put the hook in; a second time does nothing."""
    if not _standing:
        _standing.append(_DisplayHook(sys.displayhook))
        sys.displayhook = _standing[0]


def unregister() -> None:
    """Take the hook out; one that somebody has put in its place since stays, and ours then only hands on."""
    while _standing:
        hook = _standing.pop()
        hook.is_on = False
        if sys.displayhook is hook:
            sys.displayhook = hook.before
