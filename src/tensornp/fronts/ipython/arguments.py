"""The line of a magic: options in front, then paths or expressions exactly as they were typed."""

from __future__ import annotations

import ast
import getopt
import linecache
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.text import quoted
from tensornp.errors import TensornpError
from tensornp.models.names.quoted import closest
from tensornp.render.layout.words import NOT_PYTHON, in_parentheses, parsed

_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""A word; spaces in quotes do not end it."""
_QUOTED = re.compile(r"""(["'])((?:(?!\1).)*)\1""")
_FILE = "<expression>"
_PATH = (
    r"(?:~|\.{1,2})?[/\\]|[A-Za-z][\w+.-]*:[\\/]|[^\s()\[\]]+\.(safetensors|index\.json|pt|pth|bin|ckpt|npz|npy|gguf)$"
)


@contextmanager
def as_usage_errors(magic: str = "") -> Iterator[None]:
    """Show an error of tensornp as one sentence; for a named magic, any other error."""
    try:
        yield
    except TensornpError as error:
        raise UsageError(str(error).replace("pass copy=None", "pass copy=None (leave out --share)")) from None
    except UsageError:
        raise
    except Exception as error:
        if not magic:
            raise
        from tensornp.core.lowlevel.fallback import told

        raise UsageError(f"{magic} failed: {told(magic, error)}") from None


def flags_of(options: str) -> dict[str, str]:
    """Return the flags of options such as ``"copy,c dtype,d= explain"``, each with its long name."""
    names = [one.rstrip("=").split(",") for one in options.split()]
    return {flag: long for long, *short in names for flag in (f"--{long}", *(f"-{letter}" for letter in short))}


def split_line(line: str, options: str) -> tuple[dict[str, str], str]:
    """Return the options in front of `line` by long name, and the rest of it verbatim.

    Those that end in ``=`` take a value. IPython's own parsers change expressions such as ``d["a  b"]``.
    """
    flags = flags_of(options)
    with_value = {one.rstrip("=").split(",")[0] for one in options.split() if one.endswith("=")}
    words = list(_WORD.finditer(line))
    short = "".join(flag[1] + ":" * (long in with_value) for flag, long in flags.items() if flag[1] != "-")
    # A name that stands twice would have no prefix.
    long_names = [long + "=" * (long in with_value) for long in dict.fromkeys(flags.values())]
    try:
        pairs, others = getopt.getopt([word.group() for word in words], short, long_names)
    except getopt.GetoptError as error:
        said = f"the options are {', '.join(flags)}" if flags else "there are no options"
        cure = "" if len(error.opt) > 1 else "; put an expression that begins with - into parentheses"
        raise UsageError(f"{error.msg}; {said}{cure}") from None
    late = next((word for word in others if re.match("--[a-z]", word)), "")
    if late:
        raise UsageError(f"{late} stands behind the expression; put options before it")
    rest = line[words[-len(others)].start() :].strip() if others else ""
    return {
        flags[flag]: _QUOTED.sub(r"\2", value) if _QUOTED.fullmatch(value) else value for flag, value in pairs
    }, rest


def split_names(text: str) -> list[str]:
    """Return expressions separated by spaces outside of brackets and quotes, up to a comment."""
    names, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char in "([{") - (char in ")]}")
        is_outside = not quote and depth <= 0
        if char == "#" and is_outside:
            break
        if char.isspace() and is_outside:
            names.append("")
        else:
            names[-1] += char
    return [name for name in names if name]


def evaluated(shell: Any, expression: str, local_ns: dict[str, Any] | None, usage: str, *, paths: bool = False) -> Any:
    """Return the value of `expression`, with local names; UsageError if not Python."""
    __tracebackhide__ = True
    expression = expression.rstrip().removesuffix(";").rstrip()
    if not expression:
        raise UsageError(f"there is no expression; usage: {usage}")
    namespace = {**shell.user_ns, **(local_ns or {})}
    try:
        code = compile(expression, _FILE, "eval")
    except NOT_PYTHON as error:
        # Python adds its own cure after a semicolon.
        why = str(getattr(error, "msg", "") or error).partition(";")[0]
        raise UsageError(f"{quoted(expression)} is not an expression ({why}); {usage}") from None
    # A traceback shows the line, like that of a cell.
    linecache.cache[_FILE] = len(expression), None, [f"{line}\n" for line in expression.splitlines()], _FILE
    try:
        return eval(code, namespace)
    except (NameError, AttributeError) as error:
        if error.name in code.co_names:
            is_name = isinstance(error, NameError)
            own = shell.user_ns.keys() - shell.user_ns_hidden.keys() if is_name else ()
            files = os.listdir() if paths and "." in expression else []
            like = closest(expression, files) or closest(error.name, filter(str.isidentifier, own))
            raise UsageError(f"{error}{'; define it first' * is_name}{like}") from None
        raise
    except (LookupError, TypeError) as error:
        if "(" in expression:  # An error inside of a called function keeps its traceback.
            raise
        raise UsageError(f"{expression} has no value ({error_text(error)})") from None


def typed_value(shell: Any, text: str, local_ns: dict[str, Any] | None, usage: str) -> tuple[Any, str | None]:
    """Return a path, twice, or the value of an expression and None; else UsageError."""
    __tracebackhide__ = True
    path = path_of(text, {**shell.user_ns, **(local_ns or {})})
    return (path, path) if path is not None else (evaluated(shell, text, local_ns, usage, paths=True), None)


def path_of(text: str, names: dict[str, Any]) -> str | None:
    """Return the typed path, or None for an expression.

    A path stands in quotes, exists, contains ``://``, or looks like one and does not begin with a variable.
    """
    text = text.strip().removesuffix(";").rstrip()
    if text[:1] in ("'", '"'):
        body, _ = parsed(text)
        return body.value if isinstance(body, ast.Constant) and isinstance(body.value, str) else None
    try:
        is_there = os.path.lexists(os.path.expanduser(text))
    except ValueError:
        is_there = False
    name = text.partition(".")[0]
    is_path = is_there or (re.match(_PATH, text) is not None and name not in names)
    return text if text and is_path else None


def expression_in(text: str) -> str:
    """Return the typed expression, in parentheses if needed, so that ``['a']`` can be appended."""
    return in_parentheses(*parsed(text.strip().rstrip("; ")))
