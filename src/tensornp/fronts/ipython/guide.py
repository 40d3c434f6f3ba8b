"""`%tensornp`: one screen of what there is, the options as they are, and how they are kept for all notebooks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

from tensornp.core.lowlevel.spelled import for_output
from tensornp.core.summary.options import COMPACT, DisplayOptions
from tensornp.fronts.ipython.arguments import (
    Option,
    as_usage_errors,
    documented,
    keeping_nothing,
    split_line,
    split_names,
)

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.render.layout.table import TableRow

GREETING = "tensornp {}: show a tensor, %tonumpy, %tensors; %tensornp for more"
WHAT_THERE_IS = (
    ("t", "a cell that ends in a tensor, or in a container of tensors: its card or table, and the toggle under it"),
    ("%tonumpy t", "the array, with a receipt; --view, --share or --copy; --explain converts nothing"),
    ("%%tonumpy a b", "runs the cell, then converts these variables, or the value of its last line"),
    ("%totensor a", "the way back"),
    ("%tensors", "all tensors and arrays by the memory that they share; --release drops what only history holds"),
    ("%tensorwatch t", "after each cell, what that cell changed"),
    ("%tensorstats t", "all figures, a histogram, a heat map, and where the NaNs are; --axis D for each channel"),
    ("%tensordiff a b", "what differs between two tensors, models or files"),
    ("%weights model", "all weights of a model, or of a file or a folder of them, without loading or running it"),
    ("%%follow model", "runs the cell, and shows each call of a module in it, and where the first NaN was born"),
    ("tnp.card(t)", "the card as an object (import tensornp as tnp); also to_numpy, stats, locate, compare, image"),
    ("%tensornp --compact", "prints arrays in four digits; --style line shows a tensor in one row; --save keeps that"),
    ("%config TensorDisplay.mode = 'copy'", "sets an option; %tensornp --save keeps them for all notebooks"),
    ("%tonumpy?", "the help of a magic; TAB completes names and options"),
)
OPTIONS: dict[str, tuple[Option, ...]] = {
    "tensornp": (
        Option("", "compact", "print arrays in four digits, without exponents: what NumPy prints is a click away"),
        Option("", "style", "how tensors are shown: auto, card, or line, a row each", "STYLE"),
        Option("", "save", "keep the options as they are now for all notebooks of this IPython profile"),
        Option("", "reset", "set all options back to their defaults, and keep none"),
    ),
}
MAX_HELP = 90
"""Characters of what an option means that are shown; all of it is in the title, and in the README."""
_FILE, _SECTION = "ipython_config.json", "TensorDisplay"


@magics_class
class GuideMagics(Magics):
    """The magic of one shell that tells what there is."""

    shell: Any

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        super().__init__(shell)
        self._display = config
        self._configured = frozenset(shell.config.get(_SECTION, ()))

    @line_magic
    @keeping_nothing
    @documented(*OPTIONS["tensornp"])
    def tensornp(self, line: str) -> None:
        """Tell what there is, and the display options as they are.

        Usage::

            %tensornp [--compact] [--style STYLE] [--save | --reset]

        Options:

            {options}

        They are kept in ipython_config.json of the profile, beside what else is there; IPython reads it at each start.
        """
        options, rest = split_line(line, OPTIONS["tensornp"])
        if split_names(rest) or {"save", "reset"} <= options.keys():
            raise UsageError("%tensornp takes no argument but --compact, --style STYLE, and --save or --reset")
        if "reset" in options:
            print(self._reset())
        chosen = dict(COMPACT) if "compact" in options else {}
        chosen |= {"style": options["style"]} if "style" in options else {}
        with as_usage_errors("%tensornp"):
            DisplayOptions.of(**chosen)
        for name, value in chosen.items():
            setattr(self._display, name, value)
        if chosen:
            print(
                f"{', '.join(f'{name} = {value!r}' for name, value in chosen.items())}; %tensornp --reset takes it back"
            )
        if "save" in options:
            print(self._save())
        elif not options:
            with as_usage_errors("%tensornp"):
                text, html = self._guide()
                display({"text/plain": for_output(text), "text/html": html}, raw=True)

    def _guide(self) -> tuple[str, str]:
        """Return the screen as text and as HTML."""
        from html import escape

        from tensornp.render.layout.style import WIDE
        from tensornp.render.layout.table import Table, TableRow, table_html, table_text

        tables = (
            Table(("type", "to get"), tuple(map(TableRow, WHAT_THERE_IS))),
            Table(("option", "now", "what it means"), tuple(self._options())),
        )
        heading = f"tensornp {version('tensornp')} · {_fast()}"
        inside = "".join(map(table_html, tables))
        html = f'<div class="tensornp" dir="ltr" style="{WIDE}"><div>{escape(heading)}</div>{inside}</div>'
        return "\n\n".join([heading, *map(table_text, tables)]), html

    def _options(self) -> Iterator[TableRow]:
        """Yield a row for each option: its value, of one that was set the default too, and what it means, shortened."""
        from tensornp.core.summary.options import DisplayOptions
        from tensornp.render.layout.table import TableRow

        for option in fields(DisplayOptions):
            meaning = option.metadata["help"]
            now = _with_default(getattr(self._display, option.name), option.default)
            yield TableRow((option.name, now, shorten(meaning, MAX_HELP, placeholder=" …")), ("", "", meaning))

    def _now(self) -> dict[str, tuple[Any, Any]]:
        """Return each option's value and default."""
        return {option.name: (getattr(self._display, option.name), option.default) for option in fields(DisplayOptions)}

    def _save(self) -> str:
        file = self._file()
        kept = _read(file)
        before = kept.pop(_SECTION, {})
        before = before if isinstance(before, dict) else {}
        now = self._now()
        # What another file of the profile sets is overruled here, also by a default; what is not ours stays.
        configured = self._configured - before.keys()
        own = {name: value for name, (value, default) in now.items() if value != default or name in configured}
        section = {name: value for name, value in before.items() if name not in now} | own
        if section:
            kept[_SECTION] = section
        if section or before:
            _write(file, kept)
        if not own:
            what = f"{file} keeps none any more" if before else f"{file} was not written"
            return f"nothing to keep, since all options have their defaults; {what}"
        return f"kept in {file}: {', '.join(f'{name} = {value!r}' for name, value in own.items())}"

    def _reset(self) -> str:
        file = self._file()
        kept = _read(file)
        was_kept = kept.pop(_SECTION, None) is not None
        if was_kept:
            _write(file, kept)
        for name, (value, default) in self._now().items():
            if value != default:
                setattr(self._display, name, default)
        return f"all options have their defaults{f'; {file} keeps none any more' if was_kept else ''}"

    def _file(self) -> Path:
        profile = getattr(self.shell, "profile_dir", None)
        if profile is None:
            raise UsageError("this shell has no IPython profile in which options could be kept")
        return Path(profile.location) / _FILE


def _fast() -> str:
    """Return by what the statistics of large tensors are computed, without a look into it."""
    from tensornp.core.values.stats.fast import MAX_NBYTES_PLAIN

    try:
        return f"fast: numba {version('numba')}, compiled for the first statistics of over {MAX_NBYTES_PLAIN >> 20} MiB"
    except PackageNotFoundError:
        return 'fast: no numba is installed, which pip install "tensornp[fast]" brings'


def _with_default(value: Any, default: Any) -> str:
    return f"{value}" if value == default else f"{value} (default: {default})"


def _read(file: Path) -> dict[str, Any]:
    """Return what the file holds, nothing where there is none; what is no configuration is never written over."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read ({error}); mend it or move it away") from None
    if not isinstance(found, dict):
        raise UsageError(f"{file} holds no configuration; mend it or move it away")
    return found


def _write(file: Path, kept: dict[str, Any]) -> None:
    """Write the file whole or not at all, with the rights that it has; one that would hold nothing is taken away."""
    file = file.resolve()
    new = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        if not kept:
            file.unlink(missing_ok=True)
            return
        new.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written ({error})") from None
    finally:
        new.unlink(missing_ok=True)
