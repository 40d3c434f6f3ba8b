"""The printers in marimo: a wrapper around the look-up of its formatters.

marimo has no public registry for classes of others. `marimo._output.formatting` is private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.marimo.shown import mime_of
from tensornp.fronts.ours import has_own_display, is_met_tensor, is_ours
from tensornp.render.renderers import renderer_of

Formatter = Callable[[Any], tuple[str, str]]
_NO_REGISTRY = (
    "this marimo keeps its formatters elsewhere than the versions that tensornp was tried with: a bare tensor shows as "
    "torch prints it, and tnp.card(t) as a card"
)
_standing: list[_LookUp] = []


class _LookUp:
    """Wraps marimo's `get_formatter`: ours first, then theirs.

    marimo copies an entry for a class to each subclass, and has entries for modules, lists and dicts already.
    """

    def __init__(self, registry: Any) -> None:
        self.registry = registry
        self._before: Callable[[Any], Formatter | None] = registry.get_formatter
        self.is_on = True

    def __call__(self, obj: Any) -> Formatter | None:
        """Return the formatter of `obj`, or None for objects with methods of their own."""
        before = self._before(obj)
        is_marimo_s = before is None or getattr(before, "__module__", "").partition(".")[0] == "marimo"
        if not self.is_on or not is_marimo_s:
            return before
        return mime_of if first_that_works("a display", lambda: _shows(obj), lambda _: is_met_tensor(obj)) else before


def _shows(obj: Any) -> bool:
    # Records have methods of their own.
    return not isinstance(obj, type) and renderer_of(obj) is None and is_ours(obj, has_own_display)


def register() -> None:
    """Wrap marimo's look-up; a second call does nothing."""
    if _standing:
        return
    try:
        from marimo._output.formatting import FORMATTERS

        look_up = _LookUp(FORMATTERS)
        vars(FORMATTERS)["get_formatter"] = look_up
    except (ImportError, AttributeError):
        warnings.warn(_NO_REGISTRY, RuntimeWarning, stacklevel=3)
        return
    _standing.append(look_up)


def unregister() -> None:
    """Remove the wrapper; one that was wrapped again since only passes calls on."""
    while _standing:
        look_up = _standing.pop()
        look_up.is_on = False
        if vars(look_up.registry).get("get_formatter") is look_up:
            del look_up.registry.get_formatter
