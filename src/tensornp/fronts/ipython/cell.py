"""Run the body of a cell magic as `%%time` does, and find the typed expression of a value."""

from __future__ import annotations

import ast
import functools
import inspect
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple

from IPython.core.display_functions import display
from IPython.core.displayhook import DisplayHook

from tensornp.errors import BadRequestError
from tensornp.fronts.ipython.names import ShellSession
from tensornp.render.layout.words import NOT_PYTHON


class Body(NamedTuple):
    """The compiled statements of a cell, and its last expression, if any, with its source."""

    statements: CodeType
    last: CodeType | None
    is_quiet: bool
    expression: str


def compile_body(shell: Any, cell: str) -> Body:
    """Compile the body of a cell magic."""
    # Below an empty line in place of the magic's own, so that line numbers are right.
    source = "\n" + shell.transform_cell(cell)
    filename = shell.compile.cache(source, shell.displayhook.prompt_count, raw_code=cell)
    nodes = shell.transform_ast(shell.compile.ast_parse(source, filename=filename)).body
    last = nodes.pop().value if nodes and isinstance(nodes[-1], ast.Expr) else None
    return Body(
        shell.compile(ast.Module(nodes, []), filename, "exec"),
        shell.compile(ast.Expression(last), filename, "eval") if last is not None else None,
        DisplayHook.semicolon_at_end_of_expression(source),
        ast.unparse(last) if last is not None else "",
    )


def run(shell: Any, body: Body) -> Any:
    """Run a body in the user's namespace; return the value of the last expression, or None."""
    __tracebackhide__ = True
    exec(body.statements, shell.user_global_ns, shell.user_ns)
    return eval(body.last, shell.user_global_ns, shell.user_ns) if body.last is not None else None


def typed_expression(shell: Any) -> str:
    """Return the typed expression of the cell's value, empty for an object that it passes to `display`."""
    if shell.ast_node_interactivity not in ("last_expr", "last_expr_or_assign"):
        return ""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not display.__code__:
        if frame.f_code is DisplayHook.__call__.__code__:
            return _last_of(ShellSession(shell).source)
        frame = frame.f_back
    return ""


def reaching_expression(value: Any, shell: Any) -> str:
    """Return an expression that reaches the very value of the cell; empty where none is known.

    A typed call would make another value: then it is a name, or the place where IPython is about to keep the value.
    """
    from tensornp.core.namespace.caller import name_of
    from tensornp.core.namespace.lookup import look_up
    from tensornp.core.namespace.search import history_name

    typed = typed_expression(shell)
    if not typed:
        return ""
    with suppress(BadRequestError):
        if look_up(typed, shell.user_ns) is value:
            return typed
    hook, outputs = shell.displayhook, history_name(shell.user_ns)
    keeps = outputs and hook.cache_size and hook.do_full_cache
    return name_of(value, shell.user_ns) or (f"{outputs}[{hook.prompt_count}]" if keeps else "")


@functools.lru_cache(maxsize=1)
def _last_of(cell: str) -> str:
    try:
        last = ast.parse(cell).body[-1]
    except (*NOT_PYTHON, IndexError):
        return ""
    typed = ast.get_source_segment(cell, last.value) or "" if isinstance(last, ast.Expr) else ""
    # A magic has become a call that nobody types.
    return typed if "get_ipython()" not in typed else ""
