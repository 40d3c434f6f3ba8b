"""Install and remove the displays of tensors; those of plain Python are here."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts import marimo
from tensornp.fronts.ours import has_own_display, is_ours, summary_in, unshown_text

_standing: list[_DisplayHook] = []


def install() -> None:
    """Display each tensor as the array it converts to: in IPython, marimo, or the prompt of plain Python.

    In IPython and Jupyter this is ``%load_ext tensornp``. In marimo, call it in the cell of your imports; it holds for
    all sessions of the process. In plain Python, the prompt prints cards. A second call does nothing.
    """
    shell = _shell()
    if shell is not None:
        from tensornp.fronts.ipython import extension

        extension.load(shell)
    elif marimo.runs_in_notebook():
        marimo.register()
    else:
        register()


def uninstall() -> None:
    """Remove what `install` or ``%load_ext`` has added, and nothing else; a second call does nothing."""
    shell, extension = _shell(), sys.modules.get("tensornp.fronts.ipython.extension")
    if shell is not None and extension is not None:
        extension.unload(shell)
    marimo.unregister()
    unregister()


def _shell() -> Any:
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None


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
        from tensornp.core.summary.options import DisplayOptions
        from tensornp.render.show import summary_text

        return summary_text(summary_in(vars(sys.modules["__main__"]), value), DisplayOptions().max_height)


def register() -> None:
    """Put the hook of plain Python in; a second time does nothing."""
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
