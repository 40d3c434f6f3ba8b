"""The printers of one shell, in IPython's own registries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.lib.pretty import RepresentationPrinter, _repr_pprint
from IPython.utils.dir2 import get_real_method

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ours import has_own_display, is_ours, stands_for_tensor, unshown_text

if TYPE_CHECKING:
    from tensornp.core.summary.card import Look
    from tensornp.fronts.ipython.config import TensorDisplay

_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")


class TensorPrinters:
    """Displays tensors and containers of tensors as cards.

    A printer for `object` in the registry of MIME bundles makes the card. IPython still asks the printers of text and
    HTML that are registered for a class or its bases. So tensors have both, and any other class that IPython prints by
    itself has one for the moment. With ``%pprint`` off, IPython prints the text of a tensor by its `repr`.
    """

    def __init__(
        self,
        shell: Any,
        config: TensorDisplay,
        look: Look,
        note: Callable[[Any, Any, str], str],
    ) -> None:
        self._shell = shell
        self._config = config
        self._look = look
        self._note = note
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._ready: dict[str, tuple[Any, str]] = {}
        self._texts: Any = None
        self._momentary: tuple[type, Any] | None = None

    def register(self) -> None:
        """Put the printers into the shell; torch need not be imported yet."""
        self._texts = self._formatter.formatters["text/plain"]
        self._put(self._formatter.mimebundle_formatter, "builtins.object", self._bundle)
        for kind in _TENSORS:
            self._put(self._texts, kind, self._print)
            self._put(self._formatter.formatters["text/html"], kind, self._html)

    def unregister(self) -> None:
        """Restore every printer that is still ours."""
        self.forget()
        for formatter, kind, printer, before in reversed(self._replaced):
            # By its name, and by the class itself.
            now = [formatter.pop(kind, None), formatter.pop(kind, None)]
            others = next((one for one in now if one not in (None, printer)), before)
            if others is not None:
                formatter.for_type(_met(kind), others)
        self._replaced.clear()

    def forget(self, *_: Any) -> None:
        """Drop the texts that IPython has not asked for."""
        self._ready = {}
        self._restore_text()

    @property
    def _formatter(self) -> Any:
        return self._shell.display_formatter

    def _put(self, formatter: Any, kind: str, printer: Any) -> None:
        self._replaced.append((formatter, kind, printer, formatter.pop(kind, None)))
        formatter.for_type(_met(kind), printer)

    def _bundle(self, obj: Any) -> Any:
        """Return the card of `obj`; anything else keeps its own bundle."""
        made = self._made(obj)
        self.forget()
        if made is None:
            own = get_real_method(obj, "_repr_mimebundle_")
            return own(include=None, exclude=None) if own is not None else None
        before = self._texts.type_printers.get(type(obj))
        if not self._is_anothers(before):
            self._momentary = type(obj), before
            self._texts.type_printers[type(obj)] = self._print
            self._ready = {mime: (obj, text) for mime, text in made.items() if mime == "text/plain" or is_tensor(obj)}
        return made

    def _restore_text(self) -> None:
        """Restore the printer of the class that was displayed last."""
        if self._momentary is None:
            return
        cls, before = self._momentary
        self._momentary = None
        if before is not None:
            self._texts.type_printers[cls] = before
        else:
            self._texts.type_printers.pop(cls, None)

    def _text_made(self, mime: str, obj: Any) -> str | None:
        """Return the content of the bundle for one MIME type, once; else make it."""
        of, text = self._ready.pop(mime, (None, ""))
        if of is obj:
            return text
        made = self._made(obj)
        return made.get(mime) if made is not None else None

    def _html(self, obj: Any) -> str | None:
        return self._text_made("text/html", obj)

    def _made(self, obj: Any) -> dict[str, str] | None:
        """Return the card of `obj`, of a tensor at least its class and a reason; None for other objects."""

        def without_card(reason: str) -> dict[str, str] | None:
            text = unshown_text(obj, reason)
            return {"text/plain": text} if text is not None else None

        return first_that_works("a display", lambda: self._card_of(obj), without_card)

    def _card_of(self, obj: Any) -> dict[str, str] | None:
        is_one = is_tensor(obj)
        if not (is_one or is_ours(obj, self._has_other_display)):
            return None
        from tensornp.core.summary.card import TensorSummary
        from tensornp.core.summary.container import Unshown
        from tensornp.fronts.ipython.cell import reaching_expression, typed_expression
        from tensornp.render.show import shown_of, summary_bundle, summary_text

        expression, options = "" if is_one else reaching_expression(obj, self._shell), self._config.options
        summary = shown_of(obj, options, self._look, expression, self._shell.user_ns)
        if summary is None or (type(summary) is Unshown and not is_one):
            return None
        if type(summary) is TensorSummary and not summary.surroundings.name:
            around = summary.surroundings._replace(typed=typed_expression(self._shell))
            summary = summary._replace(surroundings=around)
        max_height = options.max_height if self._is_in_terminal() else 0
        if not self._formatter.formatters["text/html"].enabled:
            return {"text/plain": summary_text(summary, max_height)}
        anchor = self._note(obj, summary, expression)
        return summary_bundle(summary, options, max_height=max_height, anchor=anchor)

    def _print(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        """Print a card, or a tensor inside another object in one line; the rest as before."""
        if len(p.stack) > 1:
            text = first_that_works("a line", lambda: self._line_of(obj), lambda reason: unshown_text(obj, reason))
        else:
            text = self._text_made("text/plain", obj)
            self._restore_text()
        if text is None:
            self._print_as_before(obj, p, cycle)
            return
        for i, line in enumerate(text.split("\n")):
            if i:
                p.break_()
            p.text(line)

    def _line_of(self, obj: Any) -> str | None:
        if not stands_for_tensor(obj):
            return None
        from tensornp.core.summary.card import summarize_line
        from tensornp.render.tensor.card import tensor_line

        return tensor_line(summarize_line(obj, self._config.options))

    def _print_as_before(self, obj: Any, p: RepresentationPrinter, cycle: bool) -> None:
        """Print by the printer that ours replaced, or by the `__repr__` of the class."""
        for cls in type(obj).__mro__:
            printer = self._texts.type_printers.get(cls)
            if printer is not None and printer != self._print:
                printer(obj, p, cycle)
                return
            if cls is not object and callable(cls.__dict__.get("__repr__")):
                break
        _repr_pprint(obj, p, cycle)

    def _has_other_display(self, cls: type) -> bool:
        """Return whether another library has registered a printer for `cls`, or it displays itself."""
        others = (self._formatter.formatters.get(mime) for mime in ("text/plain", "text/html"))
        for formatter in filter(None, (self._formatter.mimebundle_formatter, *others)):
            for base in cls.__mro__[:-1]:
                name = base.__module__, base.__name__
                if self._is_anothers(formatter.type_printers.get(base) or formatter.deferred_printers.get(name)):
                    return True
        return has_own_display(cls)

    def _is_anothers(self, printer: Any) -> bool:
        """Return whether another library has registered `printer`."""
        is_of_ipython = getattr(printer, "__module__", "") == "IPython.lib.pretty"
        return not (printer is None or is_of_ipython or getattr(printer, "__self__", None) is self)

    def _is_in_terminal(self) -> bool:
        """Return whether text is all that is seen; the text next to a page is complete."""
        terminal = sys.modules.get("IPython.terminal.interactiveshell")
        is_shell = terminal is not None and isinstance(self._shell, terminal.TerminalInteractiveShell)
        return is_shell and bool(getattr(sys.stdout, "isatty", lambda: False)())


def _met(kind: str) -> Any:
    """Return the class of that name if its module is imported; else the name."""
    module, _, name = kind.rpartition(".")
    return getattr(sys.modules.get(module), name, kind)
