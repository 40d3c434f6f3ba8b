"""`%weights`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import (
    Option,
    as_usage_errors,
    documented,
    keeping_nothing,
    split_line,
)
from tensornp.fronts.ipython.evaluate import evaluated
from tensornp.fronts.ipython.names import check_overwritable
from tensornp.fronts.ipython.typed import argument_in, expression_in, typed_value

if TYPE_CHECKING:
    from tensornp.fronts.ipython.anchors import Anchors
    from tensornp.fronts.ipython.live_weights import LiveWeights

OPTIONS: dict[str, tuple[Option, ...]] = {
    "weights": (
        Option("o", "out", "bind the explorer to NAME", "NAME"),
        Option("", "ranks", "ask each rank that CLIENT reaches for what it has by that name", "CLIENT"),
    ),
}
USAGE = "%weights [-o NAME] [--ranks CLIENT] EXPR_OR_PATH"


@magics_class
class WeightMagics(Magics):
    """The magic of one shell that opens models."""

    shell: Any

    def __init__(self, shell: Any, anchors: Anchors, live: LiveWeights) -> None:
        super().__init__(shell)
        self._anchors, self._live = anchors, live

    @no_var_expand
    @needs_local_scope
    @line_magic
    @keeping_nothing
    @documented(*OPTIONS["weights"])
    def weights(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Show all weights of a model, in memory or on disk, and read no value.

        Usage::

            %weights [-o NAME] [--ranks CLIENT] EXPR_OR_PATH

        Options, before the expression:

            {options}

        A path that exists is opened: safetensors (a file, an index of several, a folder), a file of ``torch.save``, a
        folder of ``torch.distributed.checkpoint``, one to which accelerate has offloaded, ``.npy``, ``.npz`` or GGUF;
        it may stand in quotes and begin with ~. At an address, as ``https://…`` or ``s3://…``, only parts are asked
        for. Anything else is an expression that gives a module, an optimizer, or a
        dictionary or list of tensors, modules and optimizers. What a file wants to import is told, and neither
        imported nor run.

        In JupyterLab and Notebook the table becomes a tree: ``/`` leads to the search, arrows walk and open, Enter
        shows a weight with its values, and "Scan" reads all of them. Above the first line are the headings, by which
        Enter sorts; Shift with an arrow leads to columns that are out of sight. It keeps no model alive, but for the
        tensors of one that was typed here and that nobody else has.

        A second scan of a live model tells how far each weight has moved since the last one. For that a scan keeps
        copies, of 64 MiB together at most, as long as the weights lie where they did: of larger models they are
        samples. With ``%config TensorDisplay.stats = 'off'`` it keeps none.

        With ``--ranks rc``, a client of ipyparallel for one, the weights that each rank has by a name are one table: in
        what ranks agree, who lacks what, and who has not answered. ``tnp.ranks(rc)`` does the same, and more.

        ``tnp.weights(...)`` returns the explorer: ``w["layers.3"]``, ``w.find("*attn*")``, ``w.scan()``, and
        ``w[name].to_numpy(slice(0, 4))`` reads four rows.

        Examples::

            %weights model
            %weights -o w checkpoints/model.safetensors
            %weights --ranks rc model
            %weights https://huggingface.co/gpt2/resolve/main/model.safetensors
        """
        __tracebackhide__ = True
        self._show(line, local_ns)
        # What was typed has gone with its frame, unless others have it.
        self._live.settle()

    def _show(self, line: str, local_ns: dict[str, Any] | None) -> None:
        """Show the weights of what stands in the line, and make the table live."""
        from tensornp.models.files.address import shown_path
        from tensornp.models.weights import weights
        from tensornp.render.layout.document import displayed
        from tensornp.render.models.weights import weights_document

        __tracebackhide__ = True
        options, rest = split_line(line, OPTIONS["weights"])
        with as_usage_errors():
            if "out" in options:
                check_overwritable(self.shell, options["out"])
        if "ranks" in options:
            self._show_ranks(options, rest, local_ns)
            return
        value, path = typed_value(self.shell, rest, local_ns, USAGE)
        with as_usage_errors("%weights"):
            expression = "" if path is not None else expression_in(rest)
            names = {**self.shell.user_ns, **(local_ns or {})}
            explorer, anchor = weights(value, expression=expression, namespace=names), self._anchors.new()
            display(displayed("%weights", lambda: weights_document(explorer), anchor), raw=True)
        if "out" in options:
            self.shell.push({options["out"]: explorer})
        argument = argument_in(rest) if path is None else repr(shown_path(path))
        opened = options.get("out") or (expression if value is explorer else f"tnp.weights({argument})")
        self._live.show(explorer, anchor, opened)

    def _show_ranks(self, options: dict[str, str], rest: str, local_ns: dict[str, Any] | None) -> None:
        """Show what all ranks have by a name, each of which is asked by itself."""
        from tensornp.processes.ranks import ranks
        from tensornp.processes.summary import summarize_ranks
        from tensornp.render.layout.document import displayed
        from tensornp.render.ranks.weights import rank_weights_document

        __tracebackhide__ = True
        client = evaluated(self.shell, options["ranks"], local_ns, USAGE)
        with as_usage_errors("%weights"):
            found = ranks(client).weights(rest.removesuffix(";"))
            display(displayed("%weights", lambda: rank_weights_document(summarize_ranks(found))), raw=True)
        if "out" in options:
            self.shell.push({options["out"]: found})
