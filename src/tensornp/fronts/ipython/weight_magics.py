"""`%weights`."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import (
    NOT_PYTHON,
    Option,
    as_usage_errors,
    documented,
    keeping_nothing,
    split_line,
)
from tensornp.fronts.ipython.evaluate import evaluated
from tensornp.fronts.ipython.names import check_overwritable

if TYPE_CHECKING:
    from tensornp.fronts.ipython.anchors import Anchors
    from tensornp.fronts.ipython.live_weights import LiveWeights

OPTIONS: dict[str, tuple[Option, ...]] = {
    "weights": (Option("o", "out", "bind the explorer to NAME", "NAME"),),
}
USAGE = "%weights [-o NAME] EXPR_OR_PATH"
_LOOKS_LIKE_A_PATH = re.compile(r"[./\\]|[A-Za-z]:[\\/]|[^\s()\[\]]+\.safetensors$|[^\s()\[\]]+\.index\.json$")
_LOOKS_LIKE_A_FILE = re.compile(r"[^\s()\[\]]+\.(?:pt|pth|bin|ckpt|npz|npy|gguf)$")
"""What is a path unless it is the attribute of a variable: ``model.pt``."""


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

            %weights [-o NAME] EXPR_OR_PATH

        Options, before the expression:

            {options}

        A path that exists is opened: safetensors (a file, an index of several, a folder), a file of ``torch.save``, a
        folder of ``torch.distributed.checkpoint``, ``.npy``, ``.npz`` or GGUF; it may stand in quotes and begin with ~.
        Anything else is an expression that gives a module, an optimizer, or a dictionary of tensors. What a file wants
        to import is told, and neither imported nor run.

        In JupyterLab and Notebook the table becomes a tree: ``/`` leads to the search, arrows walk and open, Enter
        shows a weight with its values, and "Scan" reads all of them. It keeps no model alive.

        ``tnp.weights(...)`` returns the explorer: ``w["layers.3"]``, ``w.find("*attn*")``, ``w.scan()``, and
        ``w[name].to_numpy(slice(0, 4))`` reads four rows.

        Examples::

            %weights model
            %weights -o w checkpoints/model.safetensors
        """
        from tensornp.render.weights import html_of, see, text_of
        from tensornp.trees.weights import weights

        __tracebackhide__ = True
        options, rest = split_line(line, OPTIONS["weights"])
        with as_usage_errors():
            if "out" in options:
                check_overwritable(self.shell, options["out"])
        path = path_of(rest)
        if path is None and _LOOKS_LIKE_A_FILE.match(rest.rstrip("; ")) and not _evaluates(self.shell, rest, local_ns):
            path = rest.rstrip("; ")
        value = path if path is not None else evaluated(self.shell, rest, local_ns, USAGE)
        with as_usage_errors():
            expression = "" if path is not None else expression_in(rest)
            names = {**self.shell.user_ns, **(local_ns or {})}
            explorer, anchor = weights(value, expression=expression, namespace=names), self._anchors.new()
            seen = see(explorer)
            display({"text/plain": text_of(seen), "text/html": html_of(seen, anchor)}, raw=True)
        if "out" in options:
            self.shell.push({options["out"]: explorer})
        opened = options.get("out") or (expression if value is explorer else f"tnp.weights({expression or repr(path)})")
        self._live.show(explorer, anchor, opened)


def _evaluates(shell: Any, text: str, local_ns: dict[str, Any] | None) -> bool:
    """Return whether dotted names reach something; a mistake in them is that of a path."""
    name, *attributes = text.rstrip("; ").split(".")
    missing = object()
    found = (local_ns or {}).get(name, shell.user_ns.get(name, missing))
    for attribute in attributes:
        try:
            found = getattr(found, attribute, missing)
        except Exception:
            # An expression that raises shows its own error.
            return True
    return found is not missing


def expression_in(text: str) -> str:
    """Return the expression to which ``['a']`` can be appended: without a comment, and in parentheses if need be."""
    text = text.strip().rstrip("; ")
    try:
        body = ast.parse(text, mode="eval").body
        source = ast.get_source_segment(text, body) or text
    except NOT_PYTHON:
        return text
    return source if isinstance(body, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({source})"


def _is_expression(text: str) -> bool:
    try:
        compile(text, "<expression>", "eval")
    except NOT_PYTHON:
        return False
    return True


def path_of(text: str) -> str | None:
    """Return the path that was typed, or None for an expression; what looks like a path is one, there or not."""
    text = text.strip().removesuffix(";").rstrip()
    if text[:1] in ("'", '"'):
        try:
            unquoted = ast.literal_eval(text)
        except NOT_PYTHON:
            return None
        return unquoted if isinstance(unquoted, str) else None
    if not text:
        return None
    try:
        is_there = os.path.lexists(os.path.expanduser(text))
    except ValueError:
        # NUL bytes and lone surrogates.
        is_there = False
    # A tilde begins an expression too.
    is_path = is_there or _LOOKS_LIKE_A_PATH.match(text) or (text.startswith("~") and not _is_expression(text))
    return text if is_path else None
