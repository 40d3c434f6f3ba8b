"""JSON as the safetensors library reads it: what that refuses, Python's reader would take."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from tensornp.models.names.quoted import shown_name

MAX_DEPTH = 127
"""Brackets that may be open, as the library has it."""


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

        def hook(pairs: list[tuple[str, Any]]) -> Any:
            found = dict(pairs)
            if len(found) < len(pairs):
                _refuse_twins(pairs)
            return made(found) if made is not None else found

        return json.loads(written, object_pairs_hook=hook, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise MalformedError("its header is not UTF-8") from None
    except RecursionError:
        raise MalformedError("its header is nested too deeply") from None
    except ValueError as error:
        at = f" at character {error.pos:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedError(f"its header is not JSON{at}") from None


def _refuse_twins(pairs: list[tuple[str, Any]]) -> NoReturn:
    seen: set[str] = set()
    twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    raise MalformedError(f"its header has the key {shown_name(twin)} twice")


def _refuse_constant(name: str) -> Any:
    raise MalformedError(f"its header has {name} where a number should be")


def depth_of(value: Any) -> int:
    """Return how many brackets are open at most."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list, tuple))]:
        depth += 1
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return depth
