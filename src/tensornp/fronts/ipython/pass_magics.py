"""`%%follow`."""

from __future__ import annotations

from collections import ChainMap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import Option, as_usage_errors, documented, keeping_nothing, split_line
from tensornp.fronts.ipython.cell import Body, compile_body, is_awaited, run, run_async
from tensornp.fronts.ipython.evaluate import evaluated
from tensornp.fronts.ipython.names import check_overwritable

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from tensornp.fronts.ipython.live_passes import LivePasses
    from tensornp.passes.follow import FollowedPass

OPTIONS: dict[str, tuple[Option, ...]] = {
    "follow": (
        Option("", "operators", "follow the operators inside the modules as well, and name their lines"),
        Option("", "only", "follow operators only inside the modules whose names fit GLOB", "GLOB"),
        Option("", "keep", "copy what the modules whose names fit GLOB get and give, up to 256 MB", "GLOB"),
        Option("", "no-grads", "look at no gradient"),
        Option("o", "out", "bind the pass to NAME", "NAME"),
    ),
}


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
    @keeping_nothing
    @documented(*OPTIONS["follow"])
    def follow(self, line: str, cell: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Run the cell, and show each call of a module in it, and where the first NaN was born.

        Usage::

            %%follow [--operators] [--only GLOB] [--keep GLOB] [--no-grads] [-o NAME] [MODULE ...]

        Options, before the modules:

            {options}

        The cell runs as it would, also with await, and computes the same; what it raises is raised, with the card
        before it. MODULE is a variable, or an attribute of one, to follow these and what they call alone. A trailing ;
        shows no card.

        In JupyterLab and Notebook the tree is live: ``/`` leads to the search, arrows walk and unfold, Enter shows all
        that a call got and gave, and above the first line are the headings, by which Enter sorts.

        What -o binds gives each call as a card: ``run["layers.3"]`` by its name, ``run[12]`` by its number.
        ``%tensordiff run_a run_b`` tells the first call that differs between two passes.

        Examples::

            %%follow
            loss = criterion(model(x), y)
            loss.backward()

            %%follow -o run model
            model(x)

            %%follow --only layers.3.*
            model(x).sum().backward()
        """
        __tracebackhide__ = True
        is_quiet = line.rstrip().endswith(";")
        options, rest = split_line(line.rstrip().removesuffix(";"), OPTIONS["follow"])
        with as_usage_errors():
            if "out" in options:
                check_overwritable(self.shell, options["out"])
            usage, words = "%%follow [options] [MODULE ...]", rest.split()
            modules = [evaluated(self.shell, word, local_ns, usage) for word in words]
            names = self.shell.user_ns if local_ns is None else ChainMap(local_ns, self.shell.user_ns)
            followed = _follow(modules, names, options)
        body = compile_body(self.shell, cell)
        if is_awaited(self.shell, cell):
            return self._later(body, followed, options, is_quiet)
        with self._shown(followed, options, is_quiet):
            return _told(run(self.shell, body), body)

    async def _later(self, body: Body, followed: FollowedPass, options: dict[str, str], is_quiet: bool) -> Any:
        with self._shown(followed, options, is_quiet):
            return _told(await run_async(self.shell, body), body)

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


def _follow(modules: list[Any], names: MutableMapping[str, Any], options: dict[str, str]) -> FollowedPass:
    from tensornp.passes.follow import follow

    return follow(
        *modules,
        level="operators" if "operators" in options or "only" in options else "modules",
        only=options.get("only"),
        grads="no-grads" not in options,
        keep=options.get("keep"),
        namespace=names,
    )


def _told(value: Any, body: Body) -> Any:
    return None if body.is_quiet else value
