"""The display options of one shell as traits, and `%tensornp`, which lists them."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display
from traitlets import All, Enum, Int, Union, observe
from traitlets.config import Configurable

import tensornp
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.arguments import as_usage_errors, split_line
from tensornp.fronts.ipython.names import check_name

if TYPE_CHECKING:
    from tensornp.fronts.ipython.live import Live
    from tensornp.render.layout.document import Document
    from tensornp.session.ledger import Ledger


def _trait(option: Field[Any]) -> Any:
    known: dict[str, Any] = dict(option.metadata)
    default: Any = option.default
    made: list[Any] = []
    if "choices" in known:
        made.append(Enum(known["choices"], default))
    if "min" in known:
        made.append(Int(default if isinstance(default, int) else 0, min=known["min"], max=known["max"]))
    trait = made[0] if len(made) == 1 else Union(made, default_value=default)
    trait.help = known["help"]
    return trait.tag(config=True)


_TRAITS = {option.name: _trait(option) for option in fields(DisplayOptions)}


class TensorDisplay(Configurable):
    """How tensors are displayed in this shell."""

    # The traits are collected from what the class statement has bound.
    vars().update(_TRAITS)
    _options: DisplayOptions | None = None

    @property
    def options(self) -> DisplayOptions:
        """The options as they are now, frozen."""
        if self._options is None:
            self._options = DisplayOptions(
                **{option.name: getattr(self, option.name) for option in fields(DisplayOptions)}
            )
        return self._options

    @observe(All)
    def _forget(self, _: Any) -> None:
        self._options = None


class SessionMagics(Magics):
    """Magics with the options, live parts and ledger of their shell."""

    shell: Any

    def __init__(self, shell: Any, config: TensorDisplay, live: Live, ledger: Ledger) -> None:
        super().__init__(shell)
        self._display, self._live, self._ledger = config, live, ledger

    def _split(self, line: str, known: str) -> tuple[dict[str, str], str]:
        """Return the options of `line` and the rest of it; a name that cannot be bound is refused first."""
        options, rest = split_line(line, known)
        with as_usage_errors():
            if "out" in options:
                check_name(self.shell, options["out"])
        return options, rest


@magics_class
class GuideMagics(SessionMagics):
    """The magic of one shell that lists commands and options."""

    @line_magic
    def tensornp(self, line: str) -> None:
        """Show what you can type, and the display options with their values.

        Usage::

            %tensornp

        `%config TensorDisplay.mode = 'copy'` sets an option. `c.TensorDisplay.mode = "copy"` in ipython_config.py
        sets it for all notebooks.
        """
        from tensornp.render.layout.document import displayed

        self._split(line, "")
        with as_usage_errors("%tensornp"):
            display(displayed("%tensornp", self._guide), raw=True)

    def _guide(self) -> Document:
        from tensornp.render.layout.document import Document, headline
        from tensornp.render.layout.table import Table, TableRow

        magics = []
        for cls in SessionMagics.__subclasses__():
            for kind, mark in (("line", "%"), ("cell", "%%")):
                for name, method in cls.magics[kind].items():
                    magics.append(TableRow((mark + name, getattr(cls, method).__doc__.partition("\n")[0])))
        rows = []
        for option in fields(DisplayOptions):
            meaning, now = option.metadata["help"], getattr(self._display, option.name)
            text = f"{now}" if now == option.default else f"{now} (default: {option.default})"
            rows.append(TableRow((option.name, text, meaning)))
        commands = Table(("type", "to see"), tuple(magics))
        options = Table(("option", "now", "meaning"), tuple(rows))
        return Document((headline(f"tensornp {tensornp.__version__}"), commands, options))
