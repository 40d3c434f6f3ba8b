"""`%%follow`, and the live trees that dock into its cards."""

from __future__ import annotations

from collections import ChainMap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.arguments import Option, as_usage_errors, documented, split_line
from tensornp.fronts.ipython.cell import compile_body, run
from tensornp.fronts.ipython.evaluate import evaluated
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live
from tensornp.fronts.ipython.names import check_overwritable
from tensornp.fronts.ipython.residents import Residents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.passes.follow import FollowedPass

OPTIONS: dict[str, tuple[Option, ...]] = {
    "follow": (
        Option("", "operators", "also record the operators inside the modules"),
        Option("", "only", "operators of modules that match GLOB only", "GLOB"),
        Option("", "keep", "copy inputs and outputs of modules that match GLOB (256 MB)", "GLOB"),
        Option("", "no-grads", "do not read gradients"),
        Option("o", "out", "bind the pass to NAME", "NAME"),
    ),
}


class LivePasses:
    """Makes the trees of passes live; each tree holds its pass until its cell runs again."""

    def __init__(self, shell: Any, config: TensorDisplay, bind: Callable[[str, Callable[[], Any], bool], None]) -> None:
        self._shell, self._config, self._bind = shell, config, bind
        self._residents = Residents(shell)
        self._made: tuple[FollowedPass, str, str] | None = None

    def note(self, run: FollowedPass, anchor: str, expression: str) -> None:
        """Remember a pass, the anchor of its card, and its expression."""
        self._made = run, anchor, expression

    def after_cell(self, result: Any = None) -> None:
        """Put a tree into the card of a pass that is the value of the cell."""
        self.show(getattr(result, "result", None))

    def show(self, run: Any, opened: str = "") -> None:
        """Put a tree into the card that was just made of a pass; ignore other objects."""
        made, self._made = self._made, None
        if made is not None and made[0] is run:
            # The card is complete by itself.
            first_that_works(
                "the live tree of a pass", lambda: self._show(made[0], made[1], opened or made[2]), lambda _: None
            )

    def _show(self, run: FollowedPass, anchor: str, opened: str) -> None:
        if not run.is_over or len(run._record.calls) < 2 or not can_show_live(self._shell, self._config):
            return
        from tensornp.widget.passes.calls import CallsWidget

        output = IsolatedOutput(self._shell)
        widget = CallsWidget(
            run, opened=opened, anchor=anchor, options=self._config.options, binder=self._bind,
        )  # fmt: skip
        self._residents.keep(widget, output)

    def before_cell(self, *_: Any) -> None:
        """Close the trees of a cell that runs again."""
        self._residents.before_cell()

    def close(self) -> None:
        """Take all trees out of the page."""
        self._made = None
        self._residents.close()


@magics_class
class PassMagics(Magics):
    """The cell magic of one shell that follows a pass."""

    shell: Any

    def __init__(self, shell: Any, live: LivePasses) -> None:
        super().__init__(shell)
        self._live = live

    @no_var_expand
    @needs_local_scope
    @cell_magic
    @documented(*OPTIONS["follow"])
    def follow(self, line: str, cell: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Run the cell, and show each module call, and where the first NaN was produced.

        Usage::

            %%follow [OPTION ...] [MODULE ...]

        Options, before the modules::

            {options}

        The cell computes the same as without the magic, only slower. `run["layers.3"]` and `run[12]` are calls.

        Example: ``%%follow -o run model``
        """
        __tracebackhide__ = True
        from tensornp.passes.follow import follow

        is_quiet = line.rstrip().endswith(";")
        options, rest = split_line(line.rstrip().removesuffix(";"), OPTIONS["follow"], "%%follow")
        with as_usage_errors():
            if "out" in options:
                check_overwritable(self.shell, options["out"])
            usage, words = "%%follow [options] [MODULE ...]", rest.split()
            modules = [evaluated(self.shell, word, local_ns, usage) for word in words]
            names = self.shell.user_ns if local_ns is None else ChainMap(local_ns, self.shell.user_ns)
            followed = follow(
                *modules,
                level="operators" if "operators" in options or "only" in options else "modules",
                only=options.get("only"),
                grads="no-grads" not in options,
                keep=options.get("keep"),
                namespace=names,
            )
        body = compile_body(self.shell, cell)
        with self._shown(followed, options, is_quiet):
            value = run(self.shell, body)
        return None if body.is_quiet else value

    @contextmanager
    def _shown(self, followed: FollowedPass, options: dict[str, str], is_quiet: bool) -> Iterator[None]:
        """Follow what is run in the block; bind the pass and show its card then, whatever has ended it."""
        try:
            with followed:
                yield
        finally:
            if "out" in options:
                self.shell.user_ns[options["out"]] = followed
            if not is_quiet:
                display(followed)
                self._live.show(followed, options.get("out", ""))
