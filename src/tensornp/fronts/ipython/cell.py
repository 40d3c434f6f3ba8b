"""The body of a cell magic, run as IPython runs a cell: also with `await`, AST transformers, and its own tracebacks."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.error import InputRejected, UsageError

from tensornp.fronts.ipython.arguments import NOT_PYTHON, why_not_python


@dataclass(frozen=True, slots=True)
class Body:
    """What is run: of the last piece, the value is asked for, which `last` spells. A trailing ; makes it `is_quiet`."""

    filename: str
    pieces: tuple[CodeType, ...]
    is_quiet: bool
    last: str = ""


def compile_body(shell: Any, cell: str) -> Body:
    """Return the body of a cell magic, transformed and compiled, which all of it must be before any of it runs.

    Raises
    ------
    UsageError
        If it is not Python, or an AST transformer of the shell rejects it.
    """
    compiler = shell.compile
    try:
        # Below an empty line in the place of the magic's own, so that lines are counted as they are seen.
        source = "\n" + shell.transform_cell(cell)
        filename = compiler.cache(source, shell.displayhook.prompt_count, raw_code=cell)
        tree = shell.transform_ast(compiler.ast_parse(source, filename=filename))
        found = _in_modes(tree.body, shell.ast_node_interactivity)
        with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0):
            pieces = tuple(compiler(node, filename, mode) for node, mode in found)
        last = ast.unparse(found[-1][0]) if found[-1][1] == "eval" else ""
        return Body(filename, pieces, DisplayHook.semicolon_at_end_of_expression(source), last)
    except InputRejected as error:
        raise UsageError(f"an AST transformer of this shell rejects the cell: {error}") from None
    except NOT_PYTHON as error:
        line = getattr(error, "lineno", None)
        where = f"line {line} of the cell" if line else "the cell"
        raise UsageError(f"{where} is not valid Python ({why_not_python(error)})") from None


def _in_modes(nodes: list[ast.stmt], interactivity: str) -> list[tuple[ast.AST, str]]:
    """Return each piece with the mode to compile it in: ``single`` displays values, ``eval`` gives the last one."""
    last = nodes[-1] if nodes else None
    if interactivity == "last_expr_or_assign" and isinstance(last, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        targets = last.targets if isinstance(last, ast.Assign) else [last.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            value = ast.Expr(ast.Name(targets[0].id, ast.Load()))
            nodes = [*nodes, ast.fix_missing_locations(ast.copy_location(value, last))]
    *earlier, last = nodes or [ast.Pass()]
    pieces: list[tuple[ast.AST, str]] = []
    for node in earlier:
        pieces.append(_displayed(node) if interactivity == "all" else _executed(node))
    if isinstance(last, ast.Expr):
        return [*pieces, (ast.Expression(last.value), "eval")]
    return [*pieces, _displayed(last) if interactivity in ("all", "last") else _executed(last)]


def _displayed(node: ast.stmt) -> tuple[ast.AST, str]:
    return ast.Interactive([node]), "single"


def _executed(node: ast.stmt) -> tuple[ast.AST, str]:
    return ast.Module([node], []), "exec"


def run(shell: Any, body: Body) -> Any:
    """Return the value of the last expression, or None, once all has run in the user's namespace."""
    value = None
    try:
        for piece in body.pieces:
            value = eval(piece, shell.user_global_ns, shell.user_ns)
    except BaseException as error:
        _show_from(body.filename, error, shell)
        raise
    return value


async def run_async(shell: Any, body: Body) -> Any:
    """Run a body that awaits, and return the value of its last line."""
    value = None
    try:
        for piece in body.pieces:
            value = eval(piece, shell.user_global_ns, shell.user_ns)
            if piece.co_flags & inspect.CO_COROUTINE:
                value = await value
    except BaseException as error:
        _show_from(body.filename, error, shell)
        raise
    return value


def _show_from(filename: str, error: BaseException, shell: Any) -> None:
    """Have IPython show `error`, this once, from the user's own code on, without the frames that have led there."""
    if isinstance(error, UsageError):
        # It is shown without a traceback.
        return

    def render() -> list[str]:
        object.__delattr__(error, "_render_traceback_")
        at = error.__traceback__
        while at is not None and at.tb_frame.f_code.co_filename != filename:
            at = at.tb_next
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, at, tb_offset=0)
        return lines

    # Past a class that lets nothing be set.
    object.__setattr__(error, "_render_traceback_", render)


def is_awaited(shell: Any, cell: str) -> bool:
    """Return whether the body of a cell magic awaits, so that the magic has to be awaited too."""
    if "await" not in cell and "async" not in cell:
        return False
    try:
        return bool(shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell)))
    except Exception:
        # It will be told what is wrong with the cell when that is run.
        return False


def awaiting(shell: Any, magic: str) -> Callable[[list[str]], list[str]]:
    """Return an input transformer that has a cell await our cell magic where its body awaits.

    IPython decides before it runs a cell whether that needs an event loop; while one runs, no other can.
    """
    call = "get_ipython().run_cell_magic"

    def transform(lines: list[str]) -> list[str]:
        if len(lines) != 1 or not lines[0].startswith(f"{call}({magic!r}, "):
            return lines
        _, _, cell = ast.literal_eval(lines[0].strip().removeprefix(call))
        return [f"await {lines[0]}"] if is_awaited(shell, cell) else lines

    return transform
