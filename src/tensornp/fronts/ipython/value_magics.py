"""`%tensorstats`, `%tensordiff`, `%weights` and `%%follow`."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.core.lowlevel.text import quoted
from tensornp.fronts.ipython.arguments import (
    as_usage_errors,
    evaluated,
    expression_in,
    split_names,
    typed_value,
)
from tensornp.fronts.ipython.cell import compile_body, run
from tensornp.fronts.ipython.config import SessionMagics

if TYPE_CHECKING:
    from tensornp.models.comparing.comparison import WeightsComparison

OPTIONS = {
    "tensorstats": "axis,a=",
    "tensordiff": "",
    "weights": "out,o=",
    "follow": "operators only= keep= no-grads out,o=",
}


@magics_class
class ValueMagics(SessionMagics):
    """Magics of one shell that show values, models and passes."""

    @no_var_expand
    @needs_local_scope
    @line_magic
    def tensorstats(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Show statistics of a tensor or array: quantiles, histogram, heat map, and the places of NaNs.

        A model, an optimizer or a container of tensors is scanned: each weight with NaN, infinity or odd values.

        Usage::

            %tensorstats [-a D] EXPR

        Options, before the expression::

            -a, --axis D    also one row for each index of dimension D

        Examples::

            %tensorstats model.fc.weight
            %tensorstats --axis 0 conv.weight
        """
        from tensornp.core.summary.stats import summarize_stats
        from tensornp.models.comparing.compare import is_model
        from tensornp.models.weights import weights
        from tensornp.render.layout.document import displayed
        from tensornp.render.models.scan import scan_document
        from tensornp.render.values import stats_document

        __tracebackhide__ = True
        usage = "%tensorstats [--axis D] EXPR"
        options, rest = self._split(line, OPTIONS["tensorstats"])
        value, _ = typed_value(self.shell, rest, local_ns, usage)
        with as_usage_errors("%tensorstats"):
            if is_model(value) and not options:
                found = weights(value, expression=rest.rstrip("; "), namespace=self.shell.user_ns).scan()
                display(displayed("a scan", lambda: scan_document(found)), raw=True)
                return
            summary = summarize_stats(value, self._display.options, _axis_of(options), rest.rstrip("; "))
            display(displayed("statistics", lambda: stats_document(summary)), raw=True)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def tensordiff(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Compare two tensors or arrays, two models, state dicts or checkpoints, or two followed passes.

        NaN equals NaN, and 0.0 equals -0.0. Checkpoints are neither loaded nor run.

        Usage::

            %tensordiff A B     expressions or paths; one with spaces goes into parentheses or quotes

        Examples::

            %tensordiff model.fc.weight backup["fc.weight"]
            %tensordiff base.safetensors checkpoints/tuned.pt
            before = copy.deepcopy(model.state_dict())
            ...
            %tensordiff before model
        """
        from tensornp.core.summary.stats import summarize_comparison
        from tensornp.models.comparing.compare import compare, is_comparable, is_model
        from tensornp.models.comparing.comparison import WeightsComparison
        from tensornp.models.files.address import shown_path
        from tensornp.models.weights import weights
        from tensornp.render.layout.document import displayed
        from tensornp.render.models.comparison import weights_comparison_document
        from tensornp.render.passes.comparison import pass_comparison_document
        from tensornp.render.values import comparison_document

        __tracebackhide__ = True
        usage = "%tensordiff A B"
        _, rest = self._split(line, OPTIONS["tensordiff"])
        names = split_names(rest.rstrip().removesuffix(";"))
        if len(names) == 2:
            # A tuple of one is nobody's.
            names[0] = names[0].removesuffix(",")
        if len(names) != 2:
            raise UsageError(f"%tensordiff takes two expressions or paths, got {len(names)}; usage: {usage}")
        (a, path), (b, other) = (typed_value(self.shell, name, local_ns, usage) for name in names)
        with as_usage_errors("%tensordiff"):
            found: WeightsComparison | None = None
            anchor = self._live.new_anchor()
            if is_comparable(a) or is_comparable(b):
                make = partial(pass_comparison_document, compare(a, b), (names[0], names[1]))
            elif is_model(a) or is_model(b):
                seen = {**self.shell.user_ns, **(local_ns or {})}
                if is_model(a) and is_model(b):
                    a = weights(a, expression="" if path is not None else names[0], namespace=seen)
                    b = weights(b, expression="" if other is not None else names[1], namespace=seen)
                # One of them alone is refused.
                compared = compare(a, b)
                assert isinstance(compared, WeightsComparison)
                found = compared
                pairs = zip(names, (path, other), strict=True)
                said_again = (name if path is None else repr(shown_path(path)) for name, path in pairs)
                make = partial(weights_comparison_document, found, f"tnp.compare({', '.join(said_again)})")
            else:
                summary = summarize_comparison(a, b, self._display.options, (names[0], names[1]))
                make = partial(comparison_document, summary)
            display(displayed("a comparison", make, anchor), raw=True)
        if found is not None:
            self._live.show_part(found, anchor)

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
        options, rest = self._split(line, OPTIONS["weights"])
        value, path = typed_value(self.shell, rest, local_ns, "%weights [-o NAME] EXPR_OR_PATH")
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
        argument = expression if path is None else repr(shown_path(path))
        opened = options.get("out") or (expression if value is explorer else f"tnp.weights({argument})")
        self._live.show_part(seen, anchor, opened)

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
        options, rest = self._split(line.rstrip().removesuffix(";"), OPTIONS["follow"])
        with as_usage_errors():
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
        followed._cell = f"{rest}\n{cell}"
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


def _axis_of(options: dict[str, str]) -> int | None:
    if "axis" not in options:
        return None
    try:
        return int(options["axis"])
    except ValueError:
        raise UsageError(f"--axis must be the number of a dimension, got {quoted(options['axis'])}") from None
