"""Stand-ins for IPython's formatters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.formatters import MimeBundleFormatter, PlainTextFormatter, catch_format_error

Served = tuple[bool, Any]
"""Whether an object is served, and with what; None is nothing in that form."""
_IPYTHON_PRETTY = "IPython.lib.pretty"


class BundleFormatter(MimeBundleFormatter):
    """The bundle formatter of a shell, in whose place it stands.

    It is told of each object before it hands it on.

    A printer for `object` would be told too, but what a class makes of `include` and `exclude` would be lost.
    """

    def __init__(self, before: Any, prepare: Callable[[Any], bool]) -> None:
        super().__init__(parent=before.parent)
        self.before = before
        self.prepare: Callable[[Any], bool] | None = prepare
        # What others register from now on is theirs, and stays.
        for table in ("type_printers", "deferred_printers", "singleton_printers"):
            setattr(self, table, getattr(before, table))

    @catch_format_error
    def __call__(self, obj: Any, include: Any = None, exclude: Any = None) -> Any:
        """Return the bundle; that of what is ours is empty, since each MIME type is then asked for by itself."""
        if self.prepare is not None and self.prepare(obj):
            return {}, {}
        return self.before(obj, include=include, exclude=exclude)


def stand_in_for(before: Any, serve: Callable[[Any], Served]) -> Any:
    """Return a formatter that gives what `serve` has for an object, and of all others what `before` gives.

    It is of the class of `before`, and both have one state: what is registered with or set of one holds for the other.
    Printers that are put into the tables for one display would be another's too, and would stay where Ctrl-C ends it.
    """

    class StandIn(type(before)):  # type: ignore[misc]
        @catch_format_error
        def __call__(self, obj: Any) -> Any:
            is_served, made = serve(obj) if self.enabled or is_always_on else (False, None)
            return made if is_served else before(obj)

    # IPython asks for the text of what is shown, also where somebody has turned it off.
    is_always_on = isinstance(before, PlainTextFormatter)

    made = StandIn.__new__(StandIn)
    made.__dict__ = before.__dict__
    return made


def can_be_looked_up(formatter: Any, cls: type) -> bool:
    """Return whether a formatter finds a printer for `cls`, or that there is none.

    Its metaclass may raise.
    """
    try:
        formatter.lookup_by_type(cls)
    except KeyError:
        return True
    except Exception:
        return False
    return True


def is_of_ipython(printer: Any) -> bool:
    """Return whether IPython brings `printer` along, for a built-in class."""
    return getattr(printer, "__module__", "") == _IPYTHON_PRETTY
