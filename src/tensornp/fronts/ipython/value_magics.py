"""`%tensorstats` and `%tensordiff`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.core.lowlevel.quoted import quoted
from tensornp.fronts.ipython.arguments import (
    Option,
    as_usage_errors,
    documented,
    keeping_nothing,
    split_line,
    split_names,
)
from tensornp.fronts.ipython.evaluate import evaluated
from tensornp.fronts.ipython.typed import typed_value

if TYPE_CHECKING:
    from tensornp.fronts.ipython.anchors import Anchors
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.fronts.ipython.live_weights import LiveWeights

OPTIONS: dict[str, tuple[Option, ...]] = {
    "tensorstats": (Option("a", "axis", "also the figures of each index of this dimension", "D"),),
    "tensordiff": (),
}


@magics_class
class ValueMagics(Magics):
    """The magics of one shell that tell what values are."""

    shell: Any

    def __init__(self, shell: Any, config: TensorDisplay, anchors: Anchors, live: LiveWeights) -> None:
        super().__init__(shell)
        self._display, self._anchors, self._live = config, anchors, live

    @no_var_expand
    @needs_local_scope
    @line_magic
    @keeping_nothing
    @documented(*OPTIONS["tensorstats"])
    def tensorstats(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Show all figures of a tensor or an array, quantiles, a histogram, a heat map, and where the NaNs are.

        Usage::

            %tensorstats [-a D] EXPR

        Options, before the expression:

            {options}

        Reads all elements once, and again to find the places; on an accelerator it does so there, block by block.
        ``tnp.stats(EXPR)`` returns the figures as an object.

        Examples::

            %tensorstats model.fc.weight
            %tensorstats --axis 0 conv.weight
        """
        from tensornp.core.summary.stats import summarize_stats
        from tensornp.render.layout.document import displayed
        from tensornp.render.values.stats import stats_document

        __tracebackhide__ = True
        usage = "%tensorstats [--axis D] EXPR"
        options, rest = split_line(line, OPTIONS["tensorstats"])
        value = evaluated(self.shell, rest, local_ns, usage)
        with as_usage_errors("%tensorstats", rest.rstrip("; ")):
            summary = summarize_stats(value, self._display.options, _axis_of(options), rest.rstrip("; "))
            display(displayed("statistics", lambda: stats_document(summary)), raw=True)

    @no_var_expand
    @needs_local_scope
    @line_magic
    @keeping_nothing
    @documented(*OPTIONS["tensordiff"])
    def tensordiff(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Show what differs between two tensors or arrays, two models, state dicts or files of weights, or two passes.

        Usage::

            %tensordiff A B

        A and B are paths, or expressions; one with spaces outside of brackets goes into parentheses or quotes. A
        checkpoint may be compared with a dictionary of what it was saved of: ``{"model": model, "optimizer": opt}``.
        NaN equals NaN, and 0.0 equals -0.0. Of models, weights of one name are compared, what moved most first; with a
        prefix such as ``module.`` on one side, a weight is found by either name, and that is said. Files are neither
        loaded whole nor run.

        ``model.state_dict()`` shares its memory with the model, and a step changes both, which is said; a copy keeps
        what was: ``before = copy.deepcopy(model.state_dict())``. A row of several weights opens the one that moved
        most, and leads to the others; what did not move is named in a line that opens.

        Of two passes that were followed, the first call that differs is told, and whether it was born there.

        ``tnp.compare(A, B)`` returns the figures as an object, whose repr explains a failing assert.

        Examples::

            %tensordiff model.fc.weight backup["fc.weight"]
            %tensordiff before model
            %tensordiff base.safetensors checkpoints/tuned.pt
            %tensordiff model checkpoints/tuned.pt
            %tensordiff run_a run_b
        """
        from tensornp.core.summary.comparison import summarize_comparison
        from tensornp.models.comparing.comparable import is_comparable
        from tensornp.models.comparing.compare import compare, is_model, opened
        from tensornp.models.comparing.comparison import WeightsComparison
        from tensornp.models.files.address import shown_path
        from tensornp.render.layout.document import displayed
        from tensornp.render.models.comparison import weights_comparison_document
        from tensornp.render.passes.comparison import pass_comparison_document
        from tensornp.render.values.comparison import comparison_document

        __tracebackhide__ = True
        usage = "%tensordiff A B"
        _, rest = split_line(line, OPTIONS["tensordiff"])
        names = split_names(rest.rstrip().removesuffix(";"))
        if len(names) == 2:
            # A tuple of one is nobody's.
            names[0] = names[0].removesuffix(",")
        if len(names) != 2:
            raise UsageError(f"%tensordiff takes two expressions or paths, not {len(names)}; usage: {usage}")
        (a, path), (b, other) = (typed_value(self.shell, name, local_ns, usage) for name in names)
        with as_usage_errors("%tensordiff"):
            found: WeightsComparison | None = None
            anchor = self._anchors.new()
            if is_comparable(a) or is_comparable(b):
                make = partial(pass_comparison_document, compare(a, b), (names[0], names[1]))
            elif is_model(a) or is_model(b):
                said = "" if path is not None else names[0], "" if other is not None else names[1]
                seen = {**self.shell.user_ns, **(local_ns or {})}
                # One of them alone is refused.
                pair = opened(a, b, said, namespace=seen) if is_model(a) and is_model(b) else (a, b)
                compared = compare(*pair)
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
            self._live.show_comparison(found, anchor)


def _axis_of(options: dict[str, str]) -> int | None:
    if "axis" not in options:
        return None
    try:
        return int(options["axis"])
    except ValueError:
        raise UsageError(f"--axis takes the number of a dimension, not {quoted(options['axis'])}") from None
