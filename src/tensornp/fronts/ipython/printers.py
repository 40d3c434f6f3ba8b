"""The printers for tensors and containers: one summary serves every MIME type of one display."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from IPython.lib.pretty import RepresentationPrinter, _repr_pprint
from IPython.utils.dir2 import get_real_method

if TYPE_CHECKING:
    from tensornp.core.summary.card import TensorSummary
    from tensornp.core.summary.surroundings import Look
    from tensornp.fronts.ipython.config import TensorDisplay

CONTAINERS = (list, tuple, dict)
_IPYTHON_PRETTY = "IPython.lib.pretty"
_DISPLAY_METHODS = ("_ipython_display_", "_repr_mimebundle_", "_repr_html_", "_repr_pretty_", "_repr_markdown_")
MAX_SEARCHED = 1000
"""Leaves among which a container's first tensor is looked for."""


class TensorPrinters:
    """The printers of one shell, and what they have put into it.

    IPython asks for the MIME bundle first, then for each MIME type. The bundle printer adds nothing to the bundle: it
    makes the summary, from which each MIME type is then served once.
    """

    def __init__(
        self, shell: Any, config: TensorDisplay, look: Look, on_shown: Callable[[Any, TensorSummary, str], None]
    ) -> None:
        self._formatter = shell.display_formatter
        self._config = config
        self._look = look
        self._on_shown = on_shown
        self._summaries: dict[str, tuple[Any, Any, str]] = {}
        self._registered: list[tuple[Any, Any, Any, Any]] = []
        self._lent: list[tuple[Any, type, Any, Any]] = []
        self._has_met_torch = False

    def register(self) -> None:
        """Put the printers into the shell; torch need not be imported yet."""
        for formatter, printer in self._own():
            for kind in ("torch.Tensor", "torch.nn.parameter.Parameter", *CONTAINERS):
                self._put(formatter, kind, printer)
        # Whatever stands for a tensor may be of any class.
        self._put(self._formatter.mimebundle_formatter, object, self._prepare)

    def unregister(self) -> None:
        """Take out what is still ours, and put back what was there before."""
        for formatter, kind, printer, previous in reversed(self._registered):
            for table, key in _places(formatter, kind):
                if table.get(key) == printer:
                    del table[key]
                    if previous is not None:
                        table[key] = previous
        self._registered.clear()
        self.forget()

    def _own(self) -> tuple[tuple[Any, Any], ...]:
        by_mime = self._formatter.formatters
        return (
            (self._formatter.mimebundle_formatter, self._prepare),
            (by_mime["text/plain"], self._print_plain),
            (by_mime["text/html"], self._print_html),
        )

    def _put(self, formatter: Any, kind: Any, printer: Any) -> None:
        table, key = _places(formatter, kind)[-1]
        self._registered.append((formatter, kind, printer, table.get(key)))
        table[key] = printer

    def forget(self, *_: Any) -> None:
        """Drop summaries that no MIME type has asked for."""
        self._summaries.clear()
        self._take_back()

    def _prepare(self, obj: Any) -> Any:
        self.forget()
        if not self._shows(obj):
            return self._as_before(self._formatter.mimebundle_formatter, obj, include=None, exclude=None)
        self._lend(type(obj))
        summary, anchor = self._summarize(obj), ""
        if _is_tensor(obj):
            anchor = f"tnp-{uuid.uuid4().hex[:8]}"
            self._on_shown(obj, summary, anchor)
        prepared = obj, summary, anchor
        self._summaries = {"text/plain": prepared, "text/html": prepared}
        return None

    def _meet_torch(self) -> None:
        """Log once if this torch is newer than all that were tried; the extension may be loaded before torch is."""
        if not self._has_met_torch:
            from tensornp.core.lowlevel.private_names import warn_of_untried_torch

            self._has_met_torch = True
            warn_of_untried_torch()

    def _lend(self, cls: type) -> None:
        """Have the text printer ask us for this one object: it prefers the `__repr__` of a subclass to its base's."""
        by_mime = self._formatter.formatters
        lent: list[tuple[Any, Any]] = [(by_mime["text/plain"].type_printers, self._print_plain)]
        if not _is_tensor_class(cls):
            lent.append((by_mime["text/html"].type_printers, self._print_html))
        for printers, printer in lent:
            previous = printers.get(cls)
            if previous is None or _is_of_ipython(previous):
                printers[cls] = printer
                self._lent.append((printers, cls, printer, previous))

    def _take_back(self, *own: Any) -> None:
        """Let go of the class, which a cell may define again and again; with `own`, of these printers alone."""
        for lent in list(self._lent):
            printers, cls, printer, previous = lent
            if own and printer not in own:
                continue
            self._lent.remove(lent)
            if printers.get(cls) == printer:
                del printers[cls]
                if previous is not None:
                    printers[cls] = previous

    def _summarize(self, obj: Any) -> Any:
        from tensornp.core.summary.card import summarize, summarize_container

        self._meet_torch()
        options = self._config.options
        return summarize(obj, options, self._look) if _is_one(obj) else summarize_container(obj, options)

    def _summary_for(self, mime: str, obj: Any) -> tuple[Any, str]:
        """Return the prepared summary once; a printer that is called by itself gets a new one."""
        of, summary, anchor = self._summaries.pop(mime, (None, None, ""))
        if of is obj and summary is not None:
            return summary, anchor
        return self._summarize(obj), ""

    def _shows(self, obj: Any) -> bool:
        """Return whether `obj` is or stands for a tensor, or is a container in which a bounded search finds one."""
        if _is_one(obj):
            return True
        if "torch" not in sys.modules:
            return False
        from tensornp.core.tensor.containers import is_container, leaves

        if not is_container(obj) or self._has_other_display(type(obj)):
            return False
        try:
            return any(_is_one(leaf) for _, leaf in islice(leaves(obj), MAX_SEARCHED))
        except Exception:
            # A container whose iteration raises is left to IPython.
            return False

    def _has_other_display(self, cls: type) -> bool:
        """Return whether someone has registered a printer for `cls`, or it is a dataclass that displays itself."""
        from tensornp.core.lowlevel.attributes import class_members, mro_of
        from tensornp.core.tensor.containers import is_dataclass

        bases = mro_of(cls)[:-1]
        printers = [formatter.type_printers.get(base) for formatter, _ in self._own() for base in bases]
        if any(not (p is None or _is_of_ipython(p) or getattr(p, "__self__", None) is self) for p in printers):
            return True
        return is_dataclass(cls) and any(name in class_members(base) for base in bases for name in _DISPLAY_METHODS)

    def _print_plain(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        if not self._shows(obj) or (len(p.stack) > 1 and not _is_one(obj)):
            self._print_as_before(obj, p, cycle)
            return
        from tensornp.core.summary.card import TensorSummary, summarize_metadata
        from tensornp.render.card import tensor_line, tensor_text
        from tensornp.render.container import container_text

        if len(p.stack) > 1:
            p.text(tensor_line(summarize_metadata(obj)))
            return
        self._take_back(self._print_plain)
        summary, _ = self._summary_for("text/plain", obj)
        text = tensor_text(summary) if isinstance(summary, TensorSummary) else container_text(summary)
        for i, line in enumerate(text.split("\n")):
            if i:
                p.break_()
            p.text(line)

    def _print_html(self, obj: Any) -> Any:
        if not self._shows(obj):
            return self._as_before(self._formatter.formatters["text/html"], obj)
        from tensornp.core.summary.card import TensorSummary
        from tensornp.render.card import tensor_html
        from tensornp.render.container import container_html

        self._take_back(self._print_html)
        summary, anchor = self._summary_for("text/html", obj)
        if isinstance(summary, TensorSummary):
            return tensor_html(summary, receipt=self._config.options.receipt, anchor=anchor)
        return container_html(summary)

    def _print_as_before(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        """Print what is not ours as the shell did before: its own printer for the class, or the class's `__repr__`."""
        plain = self._formatter.formatters["text/plain"]
        for cls in type(obj).__mro__:
            printer = self._before(plain, cls)
            if printer is not None:
                printer(obj, p, cycle)
                return
            if cls is not object and "__repr__" in cls.__dict__:
                break
        _repr_pprint(obj, p, cycle)

    def _as_before(self, formatter: Any, obj: Any, **arguments: Any) -> Any:
        """Return what `formatter` would make of `obj` without us: another library's printer, or the object's method."""
        for cls in type(obj).__mro__:
            printer = self._before(formatter, cls)
            if printer is not None:
                return printer(obj)
        method = get_real_method(obj, formatter.print_method)
        return method(**arguments) if method is not None else None

    def _before(self, formatter: Any, cls: type) -> Any:
        """Return the printer for `cls` that is not ours: the one in place, or the one that ours took the place of."""
        current = formatter.type_printers.get(cls)
        if current is None or getattr(current, "__self__", None) is not self:
            return current
        for of, kind, _, previous in self._registered:
            if of is formatter and kind is cls:
                return previous
        return None


def _is_tensor(obj: Any) -> bool:
    if not hasattr(sys.modules.get("torch"), "Tensor"):
        return False
    from tensornp.core.lowlevel.attributes import is_tensor

    return is_tensor(obj)


def _is_one(obj: Any) -> bool:
    """Return whether `obj` is a tensor, or stands for one."""
    if not hasattr(sys.modules.get("torch"), "Tensor"):
        return False
    from tensornp.core.tensor.stand_ins import is_tensor_like

    return is_tensor_like(obj)


def _is_tensor_class(cls: type) -> bool:
    from tensornp.core.lowlevel.attributes import is_subclass

    return is_subclass(cls, sys.modules["torch"].Tensor)


def _is_of_ipython(printer: Any) -> bool:
    """Return whether IPython brings `printer` along, for a built-in class."""
    return getattr(printer, "__module__", "") == _IPYTHON_PRETTY


def _places(formatter: Any, kind: Any) -> list[tuple[dict[Any, Any], Any]]:
    """Return the tables and keys under which `formatter` may keep `kind`; the last is where it belongs now.

    A class named by module and name stays in a table of its own until IPython first meets an instance.
    """
    if not isinstance(kind, str):
        return [(formatter.type_printers, kind)]
    module, _, name = kind.rpartition(".")
    places = [(formatter.deferred_printers, (module, name))]
    cls = getattr(sys.modules.get(module), name, None)
    return [*places, (formatter.type_printers, cls)] if cls is not None else places
