"""Name the objects in a container: names, expressions, weights, and what is not looked into."""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.containers import MAX_DEPTH, is_container, is_seen, leaves
from tensornp.core.tensor.form import code_of_tensor, is_storage, tensor_of
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path, is_plain_tuple, key_text, steps_of, tuple_text
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.entry import NotListed, WeightEntry, noted, nothing
from tensornp.models.entries.in_memory import array_weight, kind_of, weight_of
from tensornp.models.names.quoted import MAX_INSIDE, cut

_MAX_BITS = 1000
"""Bits of an integer that is written out."""
MAX_LEAVES = 5_000_000
"""Values of one container that are looked at: some seconds."""
_OF_TORCH = frozenset(map(id, (torch.dtype, torch.device, torch.layout, torch.memory_format)))
"""Classes by identity: a metaclass of the user's may compute hashes and equality."""
_MASKED = "it is a masked array, whose hidden elements are no weights; put its .filled() there"
_REACHING = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)
_MAX_SAID = 4
_HOLD_NONE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def steps_below(path: Path) -> list[Any]:
    """Return the steps from the root to a leaf."""
    return [*steps_of(path)][-2::-1]


def key_of(step: Any) -> str:
    """Return the part of the name for a step."""
    if type(step) is not tuple:
        return str(step).strip("[]").lstrip(".")
    (key,) = step
    return str.__str__(key) if issubclass(type(key), str) else _written(key)


def bracket_of(step: Any) -> str:
    """Return the part of the expression for a step, or a description without code."""
    return f"[{_written(step[0])}]" if type(step) is tuple else str(step)


def _written(key: Any) -> str:
    """Return a key as an expression, or its class without one."""
    if issubclass(type(key), str):
        return repr(str.__str__(key))
    return tuple_text(key) if is_plain_tuple(key) else key_text(key)


def parts_of(expression: str) -> dict[str, str]:
    """Return the expressions in a dictionary, list or tuple display, by step.

    The expression in ``{"model": model}`` is ``model``, which still reaches the model after the dictionary is gone.
    """
    try:
        display = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    pairs: Iterable[tuple[Any, ast.expr]] = ()
    if isinstance(display, ast.Dict):
        keys = zip(display.keys, display.values, strict=True)
        pairs = ((repr(key.value), value) for key, value in keys if isinstance(key, ast.Constant))
    elif isinstance(display, (ast.List, ast.Tuple)) and not any(isinstance(one, ast.Starred) for one in display.elts):
        pairs = enumerate(display.elts)
    plain = ((key, value) for key, value in pairs if all(isinstance(one, _REACHING) for one in ast.walk(value)))
    return {f"[{key}]": ast.unparse(value) for key, value in plain if not isinstance(value, ast.Constant)}


def joined(prefix: str, name: str) -> str:
    """Return the joined name of a module or an optimizer and a part of it."""
    return f"{prefix}.{name}" if prefix and name else prefix or name


def is_writable(steps: Iterable[Any]) -> bool:
    """Return whether code can express the steps: only constant keys."""
    return all(_is_constant(step[0]) for step in steps if type(step) is tuple)


def _is_constant(key: Any) -> bool:
    if is_plain_tuple(key):
        return all(map(_is_constant, key)) and key_text(key) == tuple_text(key)
    if type(key) is int:
        return key.bit_length() <= _MAX_BITS
    if type(key) is float:
        return math.isfinite(key)
    if type(key) is bytes:
        return key_text(key) == repr(key)
    return issubclass(type(key), str) or key is None or type(key) is bool


def weights_of_leaf(what: Any, name: str, code: str) -> Iterator[WeightEntry]:
    """Yield the weight for an object in a container, if it is one."""
    if is_tensor_like(what):
        yield weight_of(name, kind_of(what), what, code)
    elif issubclass(type(what), np.ma.MaskedArray):
        yield nothing(name, "array", code, _MASKED, "cpu")
    elif is_array(what):
        yield array_weight(name, what, code)
    elif is_storage(what):
        try:
            entry = weight_of(name, "tensor", tensor_of(what), code_of_tensor(what, code))
        except Exception:
            # It is freed, or elsewhere.
            return
        yield noted(entry, type(what).__name__)


def plain_of(what: Any) -> Any:
    """Return a NumPy number as a plain value, torch's dtypes and devices as text."""
    cls = type(what)
    if id(cls) in _OF_TORCH:
        return str(what)
    return np.generic.item(what) if issubclass(cls, np.generic) and cls.__module__ == "numpy" else what


class Unlisted:
    """Objects of a container without listed weights."""

    def __init__(self) -> None:
        self._noted: list[tuple[str, Any]] = []
        self._listed: set[int] = set()

    def note(self, name: str, obj: Any, depth: int = 0) -> None:
        """Take an object by its name, unless it is a container that is empty or contains itself."""
        if not (depth < MAX_DEPTH and is_container(obj) and is_seen(obj)):
            self._noted.append((name, obj))

    def is_listed(self, obj: Any) -> None:
        """Note that the weights of an object are listed."""
        self._listed.add(id(obj))

    def _is_known(self, obj: Any) -> bool:
        cls = type(obj)
        if cls in (set, frozenset):
            return all(map(self._is_known, obj))
        return id(obj) in self._listed or id(cls) in PLAIN_CLASSES or issubclass(cls, _HOLD_NONE)

    def problems(self) -> list[str]:
        """Return a problem that names the objects that may hold weights, if any."""
        named = [
            f"{cut(name, MAX_INSIDE)} ({type(one).__name__})"
            for name, one in self._noted
            if not all(self._is_known(leaf) for _, leaf in leaves(one))
        ]
        if not named:
            return []
        verb = "was" if len(named) == 1 else "were"
        said = ", ".join(named[:_MAX_SAID]) + ", …" * (len(named) > _MAX_SAID)
        return [NotListed(f"{counted(len(named), 'object')} {verb} not looked into: {said}")]
