"""JSON as the safetensors library reads it: what that refuses, Python's reader would take."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from tensornp.models.names.quoted import shown_name

_MAX_DIGITS = 308
MAX_DEPTH = 127
"""Brackets that may be open, as the library has it."""
_MAYBE_LONE = re.compile(r"\\u[dD][89a-fA-F]")
_MINUS_ZERO = re.compile(r"[\[:,]\s*-0")
_ALL_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F])|.)", re.DOTALL)
"""An escape in a text; its group is half of a pair."""


class MalformedError(Exception):
    """What is wrong with a header, in the words of the sentence's end."""


def parsed(text: bytes, made: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Return the mapping that a header is; MalformedError if it is none.

    What `made` makes of a mapping takes its place, as soon as it is read.
    """
    if not text.startswith(b"{"):
        raise MalformedError("its header does not begin with a brace")
    try:
        written = text.decode("utf-8")
        # To look for a plain text first takes a tenth of the time.
        is_escaped = "\\u" in written and _MAYBE_LONE.search(written)
        if is_escaped and any(found[1] for found in _ESCAPE.finditer(written)):
            raise MalformedError("its header has half of a surrogate pair in a text")
        # Called for each number of a million, where one may be odd.
        parse_int = _integer if _may_be_odd(text, written) else None

        def hook(pairs: list[tuple[str, Any]]) -> Any:
            found = dict(pairs)
            if len(found) < len(pairs):
                _refuse_twins(pairs)
            return made(found) if made is not None else found

        return json.loads(
            written, object_pairs_hook=hook, parse_int=parse_int, parse_float=_float, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError:
        raise MalformedError("its header is not UTF-8") from None
    except RecursionError:
        raise MalformedError("its header is nested too deeply") from None
    except ValueError as error:
        at = f" at character {error.pos:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedError(f"its header is not JSON{at}") from None


def _may_be_odd(text: bytes, written: str) -> bool:
    """Return whether a number may be the -0 that is no integer, or have more digits than the library takes."""
    has_minus_zero = "-0" in written and _MINUS_ZERO.search(written) is not None
    return has_minus_zero or b"0" * (_MAX_DIGITS + 1) in text.translate(_ALL_ONE_DIGIT)


def _refuse_twins(pairs: list[tuple[str, Any]]) -> NoReturn:
    seen: set[str] = set()
    twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    raise MalformedError(f"its header has the key {shown_name(twin)} twice")


def _integer(text: str) -> int | float:
    """Return a number as the library has it: of -0, a float."""
    if len(text) > _MAX_DIGITS:
        raise MalformedError("its header has a number that is out of range")
    return int(text) if text != "-0" else -0.0


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MalformedError("its header has a number that is out of range")
    return value


def _refuse_constant(name: str) -> Any:
    raise MalformedError(f"its header has {name} where a number should be")


def depth_of(value: Any) -> int:
    """Return how many brackets are open at most."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list, tuple))]:
        depth += 1
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return depth
