"""How a user reaches an object: the way that a search took to it, and the expression that goes the same way."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.legible import legible
from tensornp.core.tensor.containers import key_text

Kind = str
"""One of "tensor", "array", "parameter", "buffer", "grad"."""
Path = tuple[Any, Any]
"""The path to what holds an object, or None, and the last step: text, or a `Key`."""


class Key(NamedTuple):
    """A dictionary key, written out only where the name is asked for."""

    key: Any


def name_of(path: Path, keys: Mapping[int, Path] | None = None) -> str:
    """Return the expression that reaches what lies at `path`: ``model.fc.weight``, ``Out[3]["a"]``.

    `keys` gives the paths of parameters by identity, since those are keys of an optimizer's state.
    """
    steps = []
    at: Any = path
    while at is not None:
        at, step = at
        steps.append(f"[{_key_text(step.key, keys or {})}]" if type(step) is Key else step)
    return legible("".join(reversed(steps)))


def _key_text(key: Any, keys: Mapping[int, Path]) -> str:
    return name_of(keys[id(key)]) if id(key) in keys else key_text(key)


def root_of(path: Path) -> str:
    """Return the name with which `path` begins."""
    while path[0] is not None:
        path = path[0]
    return str(path[1])


def is_plain(name: Any) -> bool:
    """Return whether `name` can be typed after a dot."""
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)
