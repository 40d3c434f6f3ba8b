"""The line of a magic: its options in front, and the expression after them exactly as it was typed."""

from __future__ import annotations

import getopt
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from IPython.core.error import UsageError

from tensornp.errors import TensornpError

NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""What compiling may raise: ValueError for NUL bytes and lone surrogates, the last two for what is nested deeply."""
_MAGICS = {
    "to_numpy": "%tonumpy", "to_tensor": "%totensor", "stats": "%tensorstats", "compare": "%tensordiff",
    "weights": "%weights", "follow": "%%follow", "ranks": "%weights --ranks",
}  # fmt: skip
_CALLED = rf"^({'|'.join(_MAGICS)}) takes "
"""How errors of a function begin, which name the magic that was called."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""What spaces separate, which in quotes they do not."""
_QUOTED = re.compile(r"""(["'])((?:(?!\1).)*)\1""")
MAX_MESSAGE = 1000
"""Characters of a usage error."""
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
        """How it is typed: ``("-c", "--copy")``."""
        return (f"-{self.short}", f"--{self.long}") if self.short else (f"--{self.long}",)

    def lines(self) -> list[str]:
        """Return the lines of a help text that say what it does."""
        typed = f"{', '.join(self.flags)} {self.value}".rstrip()
        first, *more = textwrap.wrap(self.help, 80)
        below = [" " * _WIDTH + line for line in more]
        if len(typed) >= _WIDTH:
            return [typed, " " * _WIDTH + first, *below]
        return [f"{typed:<{_WIDTH}}{first}", *below]


_WIDTH = 16
"""Characters before what an option does; one whose name is longer has that in the next line."""


def documented(*options: Option) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Have the line ``{options}`` of a magic's docstring list what it takes."""

    def document(magic: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        lines = [line for option in options for line in option.lines()]
        magic.__doc__ = re.sub(
            r"(?m)^( *)\{options\}$", lambda found: "\n".join(found[1] + line for line in lines), magic.__doc__ or ""
        )
        return magic

    return document


def keeping_nothing(magic: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return `magic` with usage errors that hold no tensor: Python keeps the last error, and with it all its frames."""

    @wraps(magic)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        # IPython leaves frames out that say so: of an error in the user's code, only that code is shown.
        __tracebackhide__ = True
        try:
            result = magic(*args, **kwargs)
        except UsageError as error:
            message = _printable(error)
        else:
            return cast(_Result, _keeping_nothing_later(result)) if inspect.iscoroutine(result) else result
        # Not where it was caught: the new error would keep the old one as its context.
        raise UsageError(message)

    return run


def keeping_no_frames(magic: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return `magic`, in which nothing of the user's runs, with errors and interrupts whose frames hold nothing."""

    @wraps(magic)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return magic(*args, **kwargs)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            raise

    return run


async def _keeping_nothing_later(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    try:
        return await coroutine
    except UsageError as error:
        message = _printable(error)
    raise UsageError(message)


def _printable(error: UsageError) -> str:
    """Return the sentence, without the middle of what was typed too long, and with lone surrogates as escapes.

    These could not be sent to the page.
    """
    text = str(error).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE // 2]} … {text[-MAX_MESSAGE // 2 :]}"


@contextmanager
def as_usage_errors(looking: str = "", expression: str = "") -> Iterator[None]:
    """Let an error of tensornp end in its sentence alone, and in a magic that is named as only `looking` any other.

    The sentence has the `expression` that was typed, where a cure is written of it.
    """
    try:
        yield
    except TensornpError as error:
        said = re.sub(_CALLED, lambda found: f"{_MAGICS[found[1]]} takes ", str(error))
        if expression:
            said = said.replace("tnp.weights(...)", f"tnp.weights({expression})")
            said = said.replace("pass its state_dict()", f"%tonumpy {expression}.state_dict() converts all of it")
        raise UsageError(said) from None
    except UsageError:
        raise
    except Exception as error:
        if not looking:
            raise
        from tensornp.core.lowlevel.fallback import told

        raise UsageError(f"{looking} has failed: {told(looking, error)}") from None


def why_not_python(error: BaseException) -> str:
    """Return what compiling has to say, one of `NOT_PYTHON`, in a few words."""
    if isinstance(error, (RecursionError, MemoryError)):
        return "too deeply nested"
    # Python says what to change about it behind a semicolon.
    return str(getattr(error, "msg", "") or error).partition(";")[0]


def split_line(line: str, options: tuple[Option, ...]) -> tuple[dict[str, str], str]:
    """Return the options in front of `line` by long name, and the rest of it verbatim.

    IPython's own parsers join the rest with single spaces or look for options inside it, which changes expressions
    such as ``d["a  b"]``. Quotes around the value of an option are taken off, as a shell does.
    """
    words = list(_WORD.finditer(line))
    count = 0
    while count < len(words):
        word = words[count].group()
        if word == "--":
            count += 1
            break
        if not word.startswith("-") or word == "-":
            break
        count += 2 if _wants_next(word, options) else 1
    front = [word.group() for word in words[:count]]
    rest = line[words[count].start() :].strip() if count < len(words) else ""
    rest, behind = _without_options_behind(rest, options)
    return _parsed(front, options) | behind, rest


def _without_options_behind(rest: str, options: tuple[Option, ...]) -> tuple[str, dict[str, str]]:
    """Return what stands before options that were typed behind an expression, where it can be nothing else, and these.

    ``w -c`` is a difference, while ``w -o name`` is no Python.
    """
    body = rest.removesuffix(";")
    if not any(option.long for option in options) or is_expression(body):
        return rest, {}
    for word in re.finditer(r"(?<=\s)-\S+", body):
        words = _WORD.findall(body[word.start() :])
        before = body[: word.start()].strip()
        try:
            found = _parsed(words, options, is_all=True)
        except UsageError:
            continue
        return before + rest[len(body) :], found
    return rest, {}


def is_expression(text: str) -> bool:
    """Return whether Python could evaluate a text."""
    try:
        compile(text.strip(), "<expression>", "eval")
    except NOT_PYTHON:
        return False
    return True


def _wants_next(word: str, options: tuple[Option, ...]) -> bool:
    """Return whether the word after `word` is its value."""
    if word.startswith("--"):
        return "=" not in word and any(f"--{option.long}".startswith(word) and option.value for option in options)
    return any(option.short == word[-1] and option.value for option in options)


def _parsed(words: list[str], options: tuple[Option, ...], *, is_all: bool = False) -> dict[str, str]:
    """Return the options that words are, by long name; with `is_all`, UsageError where one is none."""
    short = "".join(option.short + (":" if option.value else "") for option in options if option.short)
    long = [option.long + ("=" if option.value else "") for option in options]
    try:
        pairs, left = getopt.getopt(words, short, long)
        if is_all and left:
            raise getopt.GetoptError(f"{left[0]} is no option")
    except getopt.GetoptError as error:
        known = ", ".join("/".join(option.flags) for option in options)
        said = f"the options are {known}" if known else "there are no options"
        raise UsageError(f"{error.msg}; {said}, and an expression that begins with - goes into parentheses") from None
    names = {flag: option.long for option in options for flag in option.flags}
    return {names[flag]: _QUOTED.sub(r"\2", value) if _QUOTED.fullmatch(value) else value for flag, value in pairs}


def split_names(text: str) -> list[str]:
    """Return expressions that are separated by spaces, up to a comment; in brackets or quotes, nothing separates."""
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
