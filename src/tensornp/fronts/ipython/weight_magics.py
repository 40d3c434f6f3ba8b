"""`%weights`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import argument_in, as_usage_errors, expression_in, split_line, typed_value
from tensornp.fronts.ipython.names import check_name

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.fronts.ipython.live import Live

OPTIONS = {"weights": "out,o="}
USAGE = "%weights [-o NAME] EXPR_OR_PATH"


@magics_class
class WeightMagics(Magics):
    """The magic of one shell that opens models."""

    shell: Any

    def __init__(self, shell: Any, config: TensorDisplay, live: Live) -> None:
        super().__init__(shell)
        self._display = config
        self._live = live

    @no_var_expand
    @needs_local_scope
    @line_magic
    def weights(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Show all weights of a model or checkpoint as a tree, without loading or running it.

        Usage::

            %weights [-o NAME] EXPR_OR_PATH

        Options, before the expression::

            -o, --out NAME  bind the explorer to NAME

        A path is a file of safetensors, torch.save, GGUF, .npy or .npz, an index of several, a folder of these, of
        torch.distributed.checkpoint or of accelerate, or an address such as https://... or s3://...
        An expression is a module, an optimizer, or a container of tensors, modules and optimizers.

        Keys in the tree: / searches, arrows move and open, Enter shows a weight or sorts by a heading.
        "Read values" reads all.
        The tree keeps no model alive. `tnp.weights(...)` returns the explorer.

        Examples::

            %weights model
            %weights -o w checkpoints/model.safetensors
        """
        from tensornp.models.files.address import shown_path
        from tensornp.models.weights import weights
        from tensornp.render.layout.document import displayed
        from tensornp.render.models.weights import weights_document

        __tracebackhide__ = True
        options, rest = split_line(line, OPTIONS["weights"])
        with as_usage_errors():
            if "out" in options:
                check_name(self.shell, options["out"])
        value, path = typed_value(self.shell, rest, local_ns, USAGE)
        with as_usage_errors("%weights"):
            expression = "" if path is not None else expression_in(rest)
            names = {**self.shell.user_ns, **(local_ns or {})}
            explorer, anchor = weights(value, expression=expression, namespace=names), self._live.new_anchor()
            seen: Any = explorer
            document = partial(weights_document, explorer)
            if path is None:
                # NaN is looked for in memory, and a file is listed without torch.
                from tensornp.models.module_view import view_of
                from tensornp.render.models.scan import module_document

                seen = view_of(explorer, self._display.options)
                document = partial(module_document, seen)
            display(displayed("%weights", document, anchor), raw=True)
        if "out" in options:
            self.shell.push({options["out"]: explorer})
        argument = argument_in(rest) if path is None else repr(shown_path(path))
        opened = options.get("out") or (expression if value is explorer else f"tnp.weights({argument})")
        self._live.show_part(seen, anchor, opened)
