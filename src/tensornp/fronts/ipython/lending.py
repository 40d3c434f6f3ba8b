"""How a shell is told of each object before it displays it, and printers that stand in its tables for that long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from IPython.core.formatters import MimeBundleFormatter, catch_format_error

from tensornp.core.lowlevel.threads import current_frames

_IPYTHON_PRETTY = "IPython.lib.pretty"


class BundleFormatter(MimeBundleFormatter):
    """The bundle formatter of a shell, in whose place it stands: it is told of each object before it hands it on.

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


class _Loan(NamedTuple):
    """A printer that stands in a table for one class, as long as one of some threads displays an instance."""

    table: dict[Any, Any]
    cls: type
    printer: Any
    previous: Any
    threads: set[int]


class Loans:
    """The printers that are lent to the tables of formatters, each for one display of one thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loans: dict[tuple[int, int], _Loan] = {}

    def lend(self, table: dict[Any, Any], cls: type, printer: Any) -> None:
        """Have `table` name `printer` for `cls` until this thread takes it back; what others have put there stays."""
        own = threading.get_ident()
        with self._lock:
            loan = self._loans.get((id(table), id(cls)))
            previous = table.get(cls)
            if loan is not None:
                loan.threads.add(own)
            elif previous is None or is_of_ipython(previous):
                table[cls] = printer
                self._loans[id(table), id(cls)] = _Loan(table, cls, printer, previous, {own})

    def take_back(self, printer: Any = None) -> None:
        """End what this thread was lent, of one printer or of all; a cell may define a class again and again."""
        with self._lock:
            # A thread may have ended before its display did.
            others = set(current_frames()) - {threading.get_ident()} if self._loans else set()
            for key, loan in list(self._loans.items()):
                if printer is None or loan.printer == printer:
                    loan.threads.intersection_update(others)
                    if not loan.threads:
                        self._end(key)

    def end(self) -> None:
        """End all of them, whichever thread displays something."""
        with self._lock:
            for key in list(self._loans):
                self._end(key)

    def previous(self, table: dict[Any, Any], cls: type) -> Any:
        """Return what stands in `table` for `cls` when nothing is lent; None for nothing."""
        with self._lock:
            loan = self._loans.get((id(table), id(cls)))
            return loan.previous if loan is not None else table.get(cls)

    def _end(self, key: tuple[int, int]) -> None:
        table, cls, printer, previous, _ = self._loans.pop(key)
        if table.get(cls) == printer:
            del table[cls]
            if previous is not None:
                table[cls] = previous


def is_of_ipython(printer: Any) -> bool:
    """Return whether IPython brings `printer` along, for a built-in class."""
    return getattr(printer, "__module__", "") == _IPYTHON_PRETTY
