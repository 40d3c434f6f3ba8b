"""The line of a magic: options in front, then the expression exactly as it was typed."""

from __future__ import annotations

import getopt
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from IPython.core.error import UsageError

from tensornp.errors import TensornpError

NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Errors of compiling: ValueError for NUL bytes and lone surrogates, the last two for deep nesting."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""A word; spaces in quotes do not end it."""
_QUOTED = re.compile(r"""(["'])((?:(?!\1).)*)\1""")
_WIDTH = 16
"""Characters before the help of an option."""
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a magic: `short` may be empty, `value` names what it takes, or is empty for a flag."""

    short: str
    long: str
    help: str
    value: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The ways to type it: ``("-c", "--copy")``."""
        return (f"-{self.short}", f"--{self.long}") if self.short else (f"--{self.long}",)

    def lines(self) -> list[str]:
        """Return its lines in a help text."""
        typed = f"{', '.join(self.flags)} {self.value}".rstrip()
        first, *more = textwrap.wrap(self.help, 90)
        return [f"{typed:<{_WIDTH - 1}} {first}", *(" " * _WIDTH + line for line in more)]


def documented(*options: Option) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Replace the line ``{options}`` in the docstring of a magic."""

    def document(magic: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        lines = [line for option in options for line in option.lines()]
        magic.__doc__ = re.sub(
            r"(?m)^( *)\{options\}$", lambda found: "\n".join(found[1] + line for line in lines), magic.__doc__ or ""
        )
        return magic

    return document


@contextmanager
def as_usage_errors(magic: str = "") -> Iterator[None]:
    """Show an error of tensornp as one sentence; with the name of a magic that only reads, any other error too."""
    try:
        yield
    except TensornpError as error:
        raise UsageError(str(error)) from None
    except UsageError:
        raise
    except Exception as error:
        if not magic:
            raise
        from tensornp.core.lowlevel.fallback import told

        raise UsageError(f"{magic} failed: {told(magic, error)}") from None


def split_line(line: str, options: tuple[Option, ...], magic: str) -> tuple[dict[str, str], str]:
    """Return the options in front of `line` by long name, and the rest of it verbatim.

    IPython's own parsers join the rest with single spaces or look for options inside it, which changes expressions
    such as ``d["a  b"]``.
    """
    words = list(_WORD.finditer(line))
    count = 0
    while count < len(words):
        word = words[count].group()
        if not word.startswith("-") or word == "-":
            break
        count += 2 if _wants_next(word, options) else 1
        if word == "--":
            break
    rest = line[words[count].start() :].strip() if count < len(words) else ""
    found = _parsed([word.group() for word in words[:count]], options)
    flags = {flag for option in options for flag in option.flags}
    for behind in _WORD.finditer(rest):
        flag = behind.group().rstrip(";").partition("=")[0]
        if behind.start() and flag in flags and not is_expression(rest):
            option, before = rest[behind.start() :].rstrip("; "), rest[: behind.start()].strip()
            raise UsageError(f"options stand before the expression: {magic} {option} {before}")
    return found, rest


def is_expression(text: str) -> bool:
    """Return whether Python could evaluate a text."""
    try:
        compile(text.strip().removesuffix(";"), "<expression>", "eval")
    except NOT_PYTHON:
        return False
    return True


def _wants_next(word: str, options: tuple[Option, ...]) -> bool:
    """Return whether the word after `word` is its value."""
    if word.startswith("--"):
        return "=" not in word and any(f"--{option.long}".startswith(word) and option.value for option in options)
    return any(option.short == word[-1] and option.value for option in options)


def _parsed(words: list[str], options: tuple[Option, ...]) -> dict[str, str]:
    """Return the values of options by long name, without the quotes around them."""
    short = "".join(option.short + (":" if option.value else "") for option in options if option.short)
    long = [option.long + ("=" if option.value else "") for option in options]
    try:
        pairs, _ = getopt.getopt(words, short, long)
    except getopt.GetoptError as error:
        known = ", ".join("/".join(option.flags) for option in options)
        said = f"the options are {known}" if known else "there are no options"
        raise UsageError(f"{error.msg}; {said}; put an expression that begins with - into parentheses") from None
    names = {flag: option.long for option in options for flag in option.flags}
    return {names[flag]: _QUOTED.sub(r"\2", value) if _QUOTED.fullmatch(value) else value for flag, value in pairs}


def split_names(text: str) -> list[str]:
    """Return expressions separated by spaces, up to a comment; spaces in brackets or quotes do not separate."""
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
