"""`%tensors` and `%tensorwatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.quoted import quoted
from tensornp.errors import TensornpError
from tensornp.fronts.ipython.anchors import Anchors
from tensornp.fronts.ipython.arguments import (
    Option,
    as_usage_errors,
    documented,
    keeping_no_frames,
    keeping_nothing,
    split_line,
    split_names,
)
from tensornp.fronts.ipython.history import History
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live
from tensornp.fronts.ipython.shell import ShellSession

if TYPE_CHECKING:
    from tensornp.core.summary.census import Census
    from tensornp.fronts.ipython.after_cell import ShellWatch
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.fronts.ipython.live import LiveToggle
    from tensornp.session.ledger import Ledger
    from tensornp.session.release import Surveyor
    from tensornp.widget.table import LiveTable

MAX_SEARCHED_ROWS = 2000
"""Rows of a table that a page can filter and sort, of which it prints fewer."""
OPTIONS: dict[str, tuple[Option, ...]] = {
    "tensors": (
        Option(
            "",
            "release",
            "drop what only IPython's history (Out[n], _) and the last traceback hold, and say how many bytes came "
            "free; a name of yours is never touched",
        ),
        Option("", "changed", "only what has changed since a card of its own showed it or %tonumpy converted it"),
        Option("s", "sort", "order by bytes (the default), name, shape, dtype or device", "KEY"),
    ),
    "tensorwatch": (Option("", "off", "watch NAME no longer, or nothing at all"),),
}


@magics_class
class MemoryMagics(Magics):
    """The magics of one shell that tell what its names hold, and what changes."""

    shell: Any

    def __init__(self, shell: Any, config: TensorDisplay, anchors: Anchors, ledger: Ledger, live: LiveToggle) -> None:
        super().__init__(shell)
        self._display = config
        self._anchors = anchors
        self._ledger = ledger
        self._live = live
        self._output = IsolatedOutput(shell)
        self._table: LiveTable | None = None
        self._watch: ShellWatch | None = None

    def _watching(self) -> ShellWatch:
        """Return the watch, made when it is first asked for, so that loading stays quick."""
        if self._watch is None:
            from tensornp.fronts.ipython.after_cell import ShellWatch

            self._watch = ShellWatch(self.shell, self._display)
        return self._watch

    def _surveyor(self) -> Surveyor:
        from tensornp.session.release import Surveyor

        return Surveyor(ShellSession(self.shell), History(self.shell), self._ledger)

    @no_var_expand
    @line_magic
    @keeping_nothing
    @keeping_no_frames
    @documented(*OPTIONS["tensors"])
    def tensors(self, line: str) -> None:
        """Show all tensors and arrays of the notebook, grouped by the memory that they share.

        Usage::

            %tensors [-s KEY] [--changed] [NAME ...]
            %tensors --release

        Options:

            {options}

        NAME may have wildcards: model, model.* or *.grad show only the groups with such a name. The bytes in the
        heading count each storage once, as the first of parameters and buffers, gradients, optimizer states, other
        names, and history. "pinned by" tells what else keeps one: a result of a cell, or a traceback. In JupyterLab
        and Notebook 7 the table sorts and filters up to 2,000 rows, also those that are not printed.

        --release drops nothing where your names could not all be searched, since one of them may reach it.
        """
        from tensornp.core.summary.census import SORTS

        options, rest = split_line(line, OPTIONS["tensors"])
        names = split_names(rest)
        if "release" in options:
            if names or len(options) > 1:
                raise UsageError("--release takes no name and no other option; a name of yours goes with del")
            self._live.unpin_unnamed()
            print(self._surveyor().release())
            return
        sort = options.get("sort", "bytes")
        if sort not in SORTS:
            raise UsageError(f"--sort takes {', '.join(SORTS[:-1])} or {SORTS[-1]}, not {quoted(sort)}")
        with as_usage_errors("%tensors"):
            self._show_table(sort, tuple(names), is_changed="changed" in options)

    def _show_table(self, sort: str, patterns: tuple[str, ...], *, is_changed: bool) -> None:
        from tensornp.render.collections.census import census_document
        from tensornp.render.layout.document import displayed

        is_live = can_show_live(self.shell, self._display)
        shown = self._display.options.max_rows
        # More than are printed, of which those that are alike are printed as one.
        max_rows = max(shown, MAX_SEARCHED_ROWS)
        limits = {} if self._display.options.unasked_nbytes else {"max_read_nbytes": 0}
        census = self._surveyor().census(
            max_rows=max_rows, sort=sort, patterns=patterns, is_changed=is_changed, **limits
        )
        if is_changed and not census.groups:
            print(
                "nothing has changed since a card of its own or %tonumpy showed it; the table of a model or container "
                "does not count: %tensorwatch NAME tells what each cell changes in one"
            )
            return
        if patterns and not census.groups:
            raise UsageError(f"no tensor or array is called {' or '.join(patterns)}; %tensors shows them all")
        anchor = self._anchors.new()
        static = displayed("%tensors", lambda: census_document(census, shown), anchor)
        display(static, raw=True)
        if census.groups and is_live:
            first_that_works(
                "the live table",
                lambda: self._make_sortable(anchor, census, static["text/html"]),
                lambda _: None,
            )

    def _make_sortable(self, anchor: str, census: Census, html: str) -> None:
        """Move the live part to the table that was just shown."""
        from tensornp.render.collections.census import census_rows
        from tensornp.widget.table import LiveTable

        self._table = self._table or LiveTable()
        rows = census_rows(census)
        self._table.show(anchor, rows, census.num_left_out, html if self._output.is_needed else "")
        self._output.show(self._table)

    def end(self) -> None:
        """Take the watch back, and the output of the table's live part."""
        self._output.clear()
        if self._watch is not None:
            self._watch.remove([])

    @no_var_expand
    @line_magic
    @keeping_nothing
    @keeping_no_frames
    @documented(*OPTIONS["tensorwatch"])
    def tensorwatch(self, line: str) -> None:
        """Tell after each cell what that cell has changed.

        Usage::

            %tensorwatch NAME ...        watch tensors, arrays, or all that a module or a container holds
            %tensorwatch                 list what is watched
            %tensorwatch --off [NAME ...]

        Options:

            {options}

        NAME is a name with attributes and constant keys, as cards and %tensors write it: model.fc.weight, d["a"][0].
        It is looked up after each cell, and nothing is run for that: no call, no property.

        A report names the rows, the largest absolute difference, whether torch has counted a write, gradients that
        were set or dropped, and moves to another device or storage. Not counted are writes of NumPy, .data and DLPack
        for example, and those of some kernels of torch: batch norm, fused optimizers, fake quantization, apply_,
        GradScaler's unscale, dist.scatter.

        Watching keeps no tensor alive, and waits for no collective. After each cell it reads up to %config
        TensorDisplay.max_watch_read_nbytes of all that is watched, and says what is left out; it keeps copies of up to
        max_watch_nbytes; of what has none, it tells which blocks changed. Where a cell runs many others, a loop of
        training cells for instance, a report is updated in place, and the last one tells of all that they changed.
        """
        options, rest = split_line(line, OPTIONS["tensorwatch"])
        names = list(dict.fromkeys(split_names(rest)))
        if "off" in options:
            gone = self._watching().remove(names)
            missing = [name for name in names if name not in gone]
            if missing:
                raise UsageError(f"{missing[0]} is not watched; %tensorwatch lists what is")
            print(f"no longer watched: {', '.join(gone)}" if gone else "nothing is watched")
            return
        if not names:
            watched = ", ".join(self._watching().watch.names)
            print(f"watched after each cell: {watched}" if watched else "nothing is watched; %tensorwatch NAME begins")
            return
        try:
            count = self._watching().add(names)
        except TensornpError as error:
            raise UsageError(str(error)) from None
        watch = self._watching().watch
        first = "the first " if watch.is_partial(names) else ""
        noun = "tensor or array" if count == 1 else "tensors or arrays"
        print(f"watching {', '.join(names)} ({first}{count:,} {noun}) after each cell")
        if watch.left_out:
            print(watch.left_out)
