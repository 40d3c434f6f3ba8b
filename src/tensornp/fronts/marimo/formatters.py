"""The printers in marimo: what stands before the look-up of its registry of formatters.

marimo has no public registry: `_mime_` and `_display_` are for one's own classes, and of others the module
`marimo._output.formatting`, private as it is, is the only one that is asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ours import has_own_display, is_met_tensor, is_ours
from tensornp.render.views import view_of

Formatter = Callable[[Any], tuple[str, str]]
_NO_REGISTRY = (
    "this marimo keeps its formatters elsewhere than the versions that tensornp was tried with: a bare tensor shows as "
    "torch prints it, and tnp.card(t) as a card"
)
_standing: list[_LookUp] = []


class _LookUp:
    """Wraps marimo's `get_formatter`: ours first, then theirs.

    An entry for a class would be copied to each subclass that is met, and marimo's own, for modules, lists and
    dictionaries, has been already.
    """

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self._before: Callable[[Any], Formatter | None] = registry.get_formatter
        self.is_on = True

    def __call__(self, obj: Any) -> Formatter | None:
        """Return what formats `obj`, or None for what is left to its own methods."""
        before = self._before(obj)
        if not self.is_on or not self._is_marimo_s(before):
            return before
        ours = first_that_works("a display", lambda: self._shows(obj), lambda _: is_met_tensor(obj))
        return _formatted if ours else before

    def _shows(self, obj: Any) -> bool:
        # A live card and a record have methods of their own, and a class is no instance of itself.
        is_left = isinstance(obj, type) or view_of(obj) is not None
        return not is_left and is_ours(obj, has_own_display)

    @staticmethod
    def _is_marimo_s(formatter: Formatter | None) -> bool:
        """Return whether no other library formats the class."""
        return formatter is None or getattr(formatter, "__module__", "").partition(".")[0] == "marimo"

    def put_in(self) -> None:
        self._registry.get_formatter = self

    def take_out(self) -> None:
        """Take it out, unless somebody has put something in its place since; then it only hands on."""
        self.is_on = False
        if vars(self._registry).get("get_formatter") is self:
            del self._registry.get_formatter


def _formatted(obj: Any) -> tuple[str, str]:
    from tensornp.fronts.marimo.shown import mime_of

    return mime_of(obj)


def register() -> None:
    """Put the printers in; a second time does nothing."""
    if _standing:
        return
    try:
        from marimo._output.formatting import FORMATTERS

        look_up = _LookUp(FORMATTERS)
        look_up.put_in()
    except (ImportError, AttributeError):
        warnings.warn(_NO_REGISTRY, RuntimeWarning, stacklevel=3)
        return
    _standing.append(look_up)


def unregister() -> None:
    """Take the printers out; without them, this does nothing."""
    while _standing:
        _standing.pop().take_out()
