"""The body of a cell magic, run as `%%time` runs it: without top-level await."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.error import InputRejected, UsageError

from tensornp.fronts.ipython.arguments import NOT_PYTHON, why_not_python


@dataclass(frozen=True, slots=True)
class Body:
    """The compiled statements of a cell, and its last expression, if any, with its source."""

    statements: CodeType
    last: CodeType | None
    is_quiet: bool
    expression: str


def compile_body(shell: Any, cell: str) -> Body:
    """Compile the body of a cell magic; raise UsageError if it is not Python."""
    try:
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
    except InputRejected as error:
        raise UsageError(f"an AST transformer of this shell rejects the cell: {error}") from None
    except NOT_PYTHON as error:
        line = getattr(error, "lineno", None)
        where = f"line {line} of the cell" if line else "the cell"
        raise UsageError(f"{where} is not valid Python ({why_not_python(error)})") from None


def run(shell: Any, body: Body) -> Any:
    """Run a body in the user's namespace; return the value of the last expression, or None."""
    __tracebackhide__ = True
    exec(body.statements, shell.user_global_ns, shell.user_ns)
    return eval(body.last, shell.user_global_ns, shell.user_ns) if body.last is not None else None
