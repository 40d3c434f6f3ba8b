"""`%%follow`."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import as_usage_errors, evaluated, split_line
from tensornp.fronts.ipython.cell import compile_body, run
from tensornp.fronts.ipython.names import check_name

OPTIONS = {"follow": "operators only= keep= no-grads out,o="}


@magics_class
class PassMagics(Magics):
    """The cell magic of one shell that follows a pass."""

    shell: Any

    @no_var_expand
    @needs_local_scope
    @cell_magic
    def follow(self, line: str, cell: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Run the cell, and show each module call, and where the first NaN was produced.

        Usage::

            %%follow [OPTION ...] [MODULE ...]

        Options, before the modules::

            --operators     also record the operators inside the modules
            --only GLOB     operators of modules that match GLOB only
            --keep GLOB     copy inputs and outputs of modules that match GLOB (256 MB)
            --no-grads      do not read gradients
            -o, --out NAME  bind the pass to NAME

        The cell computes the same as without the magic, only slower. `run["layers.3"]` and `run[12]` are calls.

        Example: ``%%follow -o run model``
        """
        __tracebackhide__ = True
        from tensornp.passes.follow import follow

        is_quiet = line.rstrip().endswith(";")
        options, rest = split_line(line.rstrip().removesuffix(";"), OPTIONS["follow"])
        with as_usage_errors():
            if "out" in options:
                check_name(self.shell, options["out"])
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
        try:
            with followed:
                value = run(self.shell, body)
        finally:
            # Whatever has ended the cell.
            if "out" in options:
                self.shell.user_ns[options["out"]] = followed
            if not is_quiet:
                display(followed)
        return None if body.is_quiet else value
