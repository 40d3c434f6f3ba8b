"""The printers for tensors and containers: one summary serves every MIME type of one display."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.lib.pretty import RepresentationPrinter, _repr_pprint
from IPython.utils.dir2 import get_real_method

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.anchors import Anchors
from tensornp.fronts.ipython.standing_in import (
    BundleFormatter,
    Served,
    can_be_looked_up,
    is_of_ipython,
    stand_in_for,
)
from tensornp.fronts.ours import has_own_display, is_met_tensor, is_ours, stands_for_tensor, unshown_text

if TYPE_CHECKING:
    from tensornp.core.summary.card import TensorSummary
    from tensornp.core.summary.surroundings import Look
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.models.module_view import ModuleView
    from tensornp.passes.follow import FollowedPass

_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")
_MIMES = ("text/plain", "text/html")
"""Of which we have something."""


class TensorPrinters:
    """The printers of one shell, and what they have put into it.

    IPython asks for the MIME bundle first, then for each MIME type. When the bundle is asked for, the summary is made,
    from which each MIME type is then served once, by what stands in for its formatter.
    """

    def __init__(
        self,
        shell: Any,
        config: TensorDisplay,
        anchors: Anchors,
        look: Look,
        on_shown: Callable[[Any, TensorSummary, str], None],
        on_module: Callable[[Any, ModuleView, str, str], None],
        on_pass: Callable[[FollowedPass, str, str], None],
    ) -> None:
        self._formatter = shell.display_formatter
        self._config = config
        self._look = look
        self._anchors = anchors
        self._on_shown, self._on_module, self._on_pass = on_shown, on_module, on_pass
        self._bundles: BundleFormatter | None = None
        self._registered: list[tuple[Any, Any, Any, Any]] = []
        self._prepared = threading.local()
        self._stand_ins: list[tuple[str, Any, Any]] = []
        self._displays: Any = None
        self._before_displays: Any = None

    def register(self) -> None:
        """Put the printers into the shell; torch need not be imported yet."""
        self._bundles = BundleFormatter(self._formatter.mimebundle_formatter, self._prepare)
        self._formatter.mimebundle_formatter = self._bundles
        self._stand_in()
        self._before_displays = self._formatter.ipython_display_formatter
        self._displays = stand_in_for(self._before_displays, self._serve_undisplayed)
        self._formatter.ipython_display_formatter = self._displays

    def _stand_in(self) -> None:
        """Replace each formatter, including formatters registered since, by a stand-in.

        The base's printer would not do for a tensor: IPython's text prefers the `__repr__` of a subclass to that.
        """
        ours = {id(stand_in) for *_, stand_in in self._stand_ins}
        serving = {"text/plain": self._serve_plain, "text/html": self._serve_html}
        printers = {"text/plain": self._print_plain, "text/html": self._print_html}
        for mime, before in list(self._formatter.formatters.items()):
            if id(before) in ours:
                continue
            for kind in _TENSORS if mime in printers else ():
                self._put(before, kind, printers[mime])
            stand_in = stand_in_for(before, serving.get(mime, partial(self._serve_nothing, mime)))
            self._stand_ins.append((mime, before, stand_in))
            self._formatter.formatters[mime] = stand_in

    def unregister(self) -> None:
        """Take out what is still ours, and put back what was there before."""
        if self._bundles is not None:
            self._bundles.prepare = None
            if self._formatter.mimebundle_formatter is self._bundles:
                self._formatter.mimebundle_formatter = self._bundles.before
        for mime, before, stand_in in self._stand_ins:
            if self._formatter.formatters.get(mime) is stand_in:
                self._formatter.formatters[mime] = before
        self._stand_ins.clear()
        if self._formatter.ipython_display_formatter is self._displays is not None:
            self._formatter.ipython_display_formatter = self._before_displays
        self._displays = self._before_displays = None
        for formatter, kind, printer, previous in reversed(self._registered):
            for table, key in _places(formatter, kind):
                if table.get(key) == printer:
                    del table[key]
                    if previous is not None:
                        table[key] = previous
        self._registered.clear()
        self.forget()

    def _put(self, formatter: Any, kind: Any, printer: Any) -> None:
        table, key = _places(formatter, kind)[-1]
        self._registered.append((formatter, kind, printer, table.get(key)))
        table[key] = printer

    def forget(self, *_: Any) -> None:
        """Drop summaries that no MIME type has asked this thread for."""
        self._prepared.summaries = {}

    def _prepare(self, obj: Any) -> bool:
        """Make ready for the display of `obj`; returns whether it is ours."""
        return first_that_works(
            "a display", lambda: self._make_ready(obj), lambda reason: self._make_unshown_ready(obj, reason)
        )

    def _make_unshown_ready(self, obj: Any, reason: str) -> bool:
        """Have a tensor shown by its class alone: its own `__repr__` could end the process."""
        if not is_met_tensor(obj):
            return False

        from tensornp.core.summary.view import Unshown

        prepared = obj, Unshown(type(obj).__name__, reason), ""
        self._prepared.summaries = {"text/plain": prepared, "text/html": prepared}
        return True

    def _make_ready(self, obj: Any) -> bool:
        self.forget()
        self._stand_in()
        if not self._shows(obj):
            return False
        summary, anchor = self._summarize(obj), ""
        if summary is None:
            return False
        if is_met_tensor(obj):
            anchor = self._anchors.new()
            self._on_shown(obj, summary, anchor)
        elif _is_of(summary, "tensornp.models.module_view", "ModuleView"):
            anchor = self._anchors.new()
            self._on_module(obj, summary, anchor, self._reaching(obj))
        elif _is_of(summary, "tensornp.passes.follow", "FollowedPass"):
            anchor = self._anchors.new()
            self._on_pass(summary, anchor, self._reaching(obj))
        prepared = obj, summary, anchor
        mimes = _MIMES
        if not can_be_looked_up(self._before_displays, type(obj)):
            # Each formatter would print the error.
            mimes = tuple(self._formatter.formatters)
        self._prepared.summaries = dict.fromkeys(mimes, prepared)
        return True

    def _serve_plain(self, obj: Any) -> Served:
        """Return the text of what was prepared, unless another library prints its class."""

        def text() -> str | None:
            printer = _registered(self._formatter.formatters["text/plain"], type(obj))
            if not self._is_prepared("text/plain", obj) or self._is_anothers(printer):
                return None
            return self._text_of(obj)

        made = first_that_works("the text of a display", text, lambda reason: unshown_text(obj, reason))
        return made is not None, made

    def _serve_html(self, obj: Any) -> Served:
        """Return the HTML of what was prepared, as `_serve_plain`.

        A printer of another library may be for a base.
        """

        def html() -> str | None:
            formatter = self._formatter.formatters["text/html"]
            if not self._is_prepared("text/html", obj):
                return None
            printer = _registered(formatter, type(obj))
            if is_met_tensor(obj) and can_be_looked_up(formatter, type(obj)):
                try:
                    printer = formatter.lookup(obj)
                except KeyError:
                    # Somebody has taken ours out.
                    return None
            return None if self._is_anothers(printer) else self._html_of(obj)

        made = first_that_works("the HTML of a display", html, lambda _: None)
        return made is not None, made

    def _serve_nothing(self, mime: str, obj: Any) -> Served:
        """Return that what was prepared has no other form, where its class raises for whoever looks for one."""
        return self._is_prepared(mime, obj), None

    def _serve_undisplayed(self, obj: Any) -> Served:
        """Return that what is ours does not display itself, where its class raises for whoever asks it."""
        if self._displays is None or can_be_looked_up(self._before_displays, type(obj)):
            return False, None
        return first_that_works("a display", lambda: self._shows(obj), lambda _: False), None

    def _is_prepared(self, mime: str, obj: Any) -> bool:
        prepared, *_ = getattr(self._prepared, "summaries", {}).get(mime, (None,))
        return prepared is obj

    def _is_anothers(self, printer: Any) -> bool:
        """Return whether another library has put `printer` into a table."""
        return not (printer is None or is_of_ipython(printer) or getattr(printer, "__self__", None) is self)

    def _summarize(self, obj: Any) -> Any:
        from tensornp.render.view import shown_of

        expression = "" if is_met_tensor(obj) else self._reaching(obj)
        return _as_typed(shown_of(obj, self._config.options, self._look, expression), self._formatter.parent)

    def _reaching(self, obj: Any) -> str:
        """Return an expression that reaches `obj`, which is being shown; empty where none is known."""
        from tensornp.fronts.ipython.cell_value import reaching_expression

        shell = self._formatter.parent
        return first_that_works("what reaches a value", lambda: reaching_expression(obj, shell), lambda _: "")

    def _summary_for(self, mime: str, obj: Any) -> tuple[Any, str]:
        """Return the prepared summary once; a printer that is called by itself gets a new one."""
        of, summary, anchor = getattr(self._prepared, "summaries", {}).pop(mime, (None, None, ""))
        if of is obj and summary is not None:
            return summary, anchor
        return self._summarize(obj), ""

    def _is_ours(self, mime: str, obj: Any) -> bool:
        return self._is_prepared(mime, obj) or self._shows(obj)

    def _shows(self, obj: Any) -> bool:
        return is_ours(obj, self._has_other_display)

    def _has_other_display(self, cls: type) -> bool:
        """Return whether someone has registered a printer for `cls`, or it has a display of its own."""

        others = (self._formatter.formatters.get(mime) for mime in _MIMES)
        for formatter in filter(None, (self._formatter.mimebundle_formatter, *others)):
            for base in cls.__mro__[:-1]:
                name = base.__module__, base.__name__
                printer = _registered(formatter, base) or formatter.deferred_printers.get(name)
                if self._is_anothers(printer):
                    return True
        return has_own_display(cls)

    def _print_plain(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        text_of = self._line_of if len(p.stack) > 1 else self._text_of
        text = first_that_works("the text of a display", lambda: text_of(obj), lambda reason: unshown_text(obj, reason))
        if text is None:
            self._print_as_before(obj, p, cycle)
            return
        for i, line in enumerate(text.split("\n")):
            if i:
                p.break_()
            p.text(line)

    def _line_of(self, obj: Any) -> str | None:
        """Return a tensor within something else in one line; None for what is no tensor."""
        if not stands_for_tensor(obj):
            return None
        from tensornp.core.summary.card import summarize_line
        from tensornp.render.tensor.card import tensor_line

        return tensor_line(summarize_line(obj, self._config.options))

    def _text_of(self, obj: Any) -> str | None:
        """Return the text of a card or a table; None where IPython's own is to stand."""
        if not self._is_ours("text/plain", obj):
            return None
        from tensornp.core.summary.view import Unshown
        from tensornp.render.view import summary_text

        summary, _ = self._summary_for("text/plain", obj)
        plain = self._formatter.formatters["text/plain"]
        if type(summary) is Unshown and is_of_ipython(self._before(plain, type(obj))):
            # Of a list or a dictionary, whose tensors we print each by itself.
            return None
        # Another thread may have made something else of it just now.
        max_height = self._config.options.max_height if self._is_in_terminal() else 0
        return summary_text(summary, max_height) if summary is not None else None

    def _is_in_terminal(self) -> bool:
        """Return whether text is all that is seen: what a notebook keeps beside a page is complete."""
        terminal = sys.modules.get("IPython.terminal.interactiveshell")
        is_shell = terminal is not None and isinstance(self._formatter.parent, terminal.TerminalInteractiveShell)
        return is_shell and bool(getattr(sys.stdout, "isatty", lambda: False)())

    def _print_html(self, obj: Any) -> Any:
        html = first_that_works("the HTML of a display", lambda: self._html_of(obj), lambda _: None)
        return html if html is not None else self._as_before(self._formatter.formatters["text/html"], obj)

    def _html_of(self, obj: Any) -> str | None:
        """Return the static HTML of a card or a table; None for what is not ours."""
        if not self._is_ours("text/html", obj):
            return None
        from tensornp.render.view import summary_html

        summary, anchor = self._summary_for("text/html", obj)
        return summary_html(summary, self._config.options, anchor=anchor) if summary is not None else None

    def _print_as_before(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        """Print what is not ours as the shell did before.

        Its own printer for the class, or the class's `__repr__`.
        """
        plain = self._formatter.formatters["text/plain"]
        for cls in type(obj).__mro__:
            printer = self._before(plain, cls)
            if printer is not None:
                printer(obj, p, cycle)
                return
            if cls is not object and callable(cls.__dict__.get("__repr__")):
                break
        _repr_pprint(obj, p, cycle)

    def _as_before(self, formatter: Any, obj: Any) -> Any:
        """Return what `formatter` would make of `obj` without us.

        Another library's printer, or the object's method.
        """
        for cls in type(obj).__mro__:
            printer = self._before(formatter, cls)
            if printer is not None:
                return printer(obj)
        method = get_real_method(obj, formatter.print_method)
        return method() if method is not None else None

    def _before(self, formatter: Any, cls: type) -> Any:
        """Return the printer for `cls` that is not ours.

        The one in place, or the one that ours took the place of.
        """
        printer = formatter.type_printers.get(cls)
        return printer if getattr(printer, "__self__", None) is not self else None


def _is_of(summary: Any, module: str, name: str) -> bool:
    # Another shell of the kernel may be in the middle of its import.
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and type(summary) is kind


def _as_typed(summary: Any, shell: Any) -> Any:
    """Add the typed expression to the summary of a tensor without a name."""
    from tensornp.core.summary.card import TensorSummary
    from tensornp.fronts.ipython.cell_value import typed_expression

    if type(summary) is not TensorSummary or summary.surroundings.name:
        return summary
    typed = first_that_works("what was typed", lambda: typed_expression(shell), lambda _: "")
    return replace(summary, surroundings=replace(summary.surroundings, typed=typed)) if typed else summary


def _registered(formatter: Any, cls: type) -> Any:
    """Return what is registered to print this very class.

    Nothing can be where its metaclass raises for its hash.
    """
    try:
        return formatter.type_printers.get(cls)
    except Exception:
        return None


def _places(formatter: Any, kind: Any) -> list[tuple[dict[Any, Any], Any]]:
    """Return the tables and keys under which `formatter` may keep `kind`.

    The last is where it belongs now.

    A class named by module and name stays in a table of its own until IPython first meets an instance.
    """
    if not isinstance(kind, str):
        return [(formatter.type_printers, kind)]
    module, _, name = kind.rpartition(".")
    places = [(formatter.deferred_printers, (module, name))]
    cls = getattr(sys.modules.get(module), name, None)
    return [*places, (formatter.type_printers, cls)] if cls is not None else places
