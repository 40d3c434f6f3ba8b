"""How a user reaches an object: the path that leads to it, and the expression that goes the same way."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from tensornp.core.lowlevel.text import legible

Kind = str
"""One of "tensor", "array", "parameter", "buffer", "grad"."""
Path = tuple[Any, Any]
"""The path to what holds an object, or None, and the last step: its text, or a dictionary key alone in a tuple."""

MAX_KEY = 120
"""Characters of a dictionary key that are shown."""
MAX_ITEMS = 10
"""Items of a tuple up to which it is a key that is written out."""


def expression_of(path: Path | None, keys: Mapping[int, Path] | None = None) -> str:
    """Return the expression of a path: ``model.fc.weight``; `keys` are paths of parameters by identity."""
    steps, keys = [], keys or {}
    while path is not None:
        path, step = path
        if type(step) is tuple:
            key = step[0]
            step = f"[{expression_of(keys[id(key)]) if id(key) in keys else key_text(key)}]"
        steps.append(step)
    return legible("".join(reversed(steps)))


def key_text(key: Any) -> str:
    if is_plain_tuple(key):
        return shortened(tuple_text(key))
    if is_plain_value(key):
        if type(key) is int and key.bit_length() > 1000:
            return f"<int of {key.bit_length():,} bits>"
        return shortened(repr(key[:MAX_KEY] if isinstance(key, (str, bytes)) else key))
    return f"<{type(key).__name__}>"


def tuple_text(key: tuple[Any, ...]) -> str:
    return f"({', '.join(map(key_text, key))}{',' if len(key) == 1 else ''})"


def shortened(text: str) -> str:
    return text if len(text) <= MAX_KEY else text[: MAX_KEY - 1] + "…"


PLAIN_CLASSES = frozenset(map(id, (int, float, complex, bool, str, bytes, type(None))))
"""Classes of numbers and texts, by identity: a metaclass of the user's may compute hashes."""


def is_plain_value(obj: Any) -> bool:
    return id(type(obj)) in PLAIN_CLASSES


def is_plain_tuple(obj: Any) -> bool:
    return type(obj) is tuple and len(obj) <= MAX_ITEMS and all(map(is_plain_value, obj))


def steps_of(path: Path | None) -> Iterator[Any]:
    while path is not None:
        path, step = path
        yield step


def first_step(path: Path) -> Path:
    """Return the first step of a path; longer paths share this object."""
    while path[0] is not None:
        path = path[0]
    return path


def is_attribute_name(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)
