"""List the tensors and plain values in the contents of a pickle, each with the keys that lead to it.

Elements of sets and arguments of unknown calls have their places as keys, which no expression reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.tensor.paths import is_plain_value, key_text
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.reader import Function, Import, Opaque, Pickled, PickledSet
from tensornp.models.pickles.torch_pickle import MAX_NAME, PickledTensor, Storage, class_of, is_of_tensors

MAX_ENTRIES = 1_000_000
_COST_AGAIN = 50
"""Values as which each counts in a container that is reached again: there may be endlessly many ways to one."""
_MAX_DEPTH = 100
_MAX_KEY = 1000
_TABLES = ("_parameters", "_buffers", "_modules")
_MANY_NUMBERS = 16
"""Numbers of a tuple that are listed; the states of random number generators have hundreds."""
_ARRAY = "NumPy array"
_OF_NUMPY = {"_reconstruct": _ARRAY, "_frombuffer": _ARRAY, "dtype": "NumPy dtype"}
_TORCH_WORDS = re.compile(r"(q?u?int|b?float|complex|bits)\d\w*|bool|half|double")


class NotBuilt(NamedTuple):
    """Stand-in for a value that is neither a tensor nor plain, such as an array."""

    said: str

    def __repr__(self) -> str:
        return f"<{self.said}>"


class Leaves:
    """Tensors and plain values of a pickle, depth first; a module lists its parameters and buffers."""

    def __init__(self, root: Any) -> None:
        self._root, self._left = root, MAX_ENTRIES
        self._num_arrays = 0
        self._met: set[int] = set()
        self._above: list[int] = []
        self._is_cut = False

    def __iter__(self) -> Iterator[tuple[str, str, Any]]:
        """Yield keys joined by dots, keys in brackets, and a value or a `NotBuilt`."""
        return self._below("", "", self._root)

    def _below(self, dotted: str, brackets: str, value: Any) -> Iterator[tuple[str, str, Any]]:
        leaf = _leaf_of(value)
        if leaf is not None or value is None:
            self._num_arrays += type(leaf) is NotBuilt and leaf.said == _ARRAY
            yield dotted, brackets, leaf
            return
        if id(value) in self._above:
            return
        cost = _COST_AGAIN if id(value) in self._met else 1
        self._met.add(id(value))
        self._above.append(id(value))
        for key, part in _parts_of(value):
            self._left -= cost
            if self._left < 0 or len(self._above) > _MAX_DEPTH:
                self._is_cut = True
                break
            text = shown_key(key)
            text = text if len(text) <= _MAX_KEY else f"{text[:_MAX_KEY]}…"
            name = f"{dotted}.{text}" if brackets else text
            yield from self._below(name, f"{brackets}[{text!r}]" if type(key) is str else f"{brackets}[{text}]", part)
        self._above.pop()

    def problems(self, who: str = "it") -> Iterator[str]:
        """Yield a sentence for each kind of value that is not listed."""
        if self._num_arrays:
            verb = "is" if self._num_arrays == 1 else "are"
            yield f"{counted(self._num_arrays, 'NumPy array')} in {who} {verb} not listed"
        if self._is_cut:
            limits = f"more than {MAX_ENTRIES:,}, deeper than {_MAX_DEPTH}, or reached in very many ways"
            yield f"some values of {who} are not listed: {limits}"


def _leaf_of(value: Any) -> Any:
    """Return a value that is listed as it is, or in words; None if it may hold others."""
    if type(value) is PickledTensor or is_plain_value(value):
        return value
    module, name = class_of(value)
    if type(value) is Opaque and module in ("torch._utils", "torch._tensor") and name.startswith("_rebuild"):
        return PickledTensor(problem=f"it is made by {legible(name[:MAX_NAME])}, in a way that is not read")
    if type(value) is Function:
        return f"torch.{name}" if module == "torch" and _TORCH_WORDS.fullmatch(name) else None
    if type(value) is tuple and len(value) > _MANY_NUMBERS and all(type(one) in (int, float) for one in value):
        return NotBuilt(f"tuple of {len(value):,} numbers")
    if type(value) is Storage:
        return NotBuilt(f"storage of {value.nbytes:,} bytes")
    return NotBuilt(_OF_NUMPY[name]) if module.partition(".")[0] == "numpy" and name in _OF_NUMPY else None


def _parts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield key and value of each part of a container or an object."""
    if type(value) is not Opaque:
        yield from _pairs(value)
    elif type(value.state) is dict and "_parameters" in value.state:
        for name in _TABLES:
            yield from _pairs(value.state.get(name))
        yield from ((key, one) for key, one in value.state.items() if key not in _TABLES and not is_plain_value(one))
    else:
        yield from enumerate(value.args)
        yield from value.items.items()
        yield from enumerate(value.appended)
        is_container = type(value.state) in (dict, list, tuple)
        yield from _pairs(value.state if is_container or value.state is None else {"state": value.state})


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if type(value) is dict:
        return value.items()
    return enumerate(value) if type(value) in (list, tuple, PickledSet) else ()


def shown_key(key: Any) -> str:
    """Return a key as a part of a name."""
    if type(key) is str or (type(key) is int and key.bit_length() < 64):
        return str(key)
    if type(key) is tuple:
        return f"({', '.join(map(key_text, key))}{',' if len(key) == 1 else ''})"
    return str(key.what) if type(key) is Function else key_text(key)


_CLASS_OF_TORCH = re.compile(r"torch\.(nn\.modules|optim)\.[\w.]+\._?[A-Z]\w*", re.ASCII)
"""Layers and optimizers: these modules have no function with such a name."""
_HOLDER = re.compile(
    r"argparse\.Namespace|types\.SimpleNamespace|pathlib(\._local)?\.(Posix|Windows)Path"
    r"|datetime\.(datetime|timedelta)|_codecs\.encode|decimal\.Decimal|uuid\.UUID|numpy\.(dtype|ndarray)"
    r"|numpy\._?core\.multiarray\.(scalar|_reconstruct)|torch\.ScriptObject|(builtins|__builtin__)\.(bytes|complex)"
)
"""Classes that hold values, and do nothing else when they are made."""


class WantedImport(str):
    """A problem: loading a file would import `wanted`, and call it if `is_called`."""

    wanted: Import
    is_called: bool

    def __new__(cls, said: str, wanted: Import, is_called: bool) -> WantedImport:
        made = super().__new__(cls, said)
        made.wanted, made.is_called = wanted, is_called
        return made

    def retold(self, said: str) -> WantedImport:
        return WantedImport(said, self.wanted, self.is_called)

    @property
    def is_alarm(self) -> bool:
        """Whether it is neither a class of torch nor one that merely holds values."""
        harmless = (_HOLDER, _CLASS_OF_TORCH)
        # A name with a dot reaches through an object.
        return "." in self.wanted.name or not any(one.fullmatch(str(self.wanted)) for one in harmless)


def wanted_of(found: Pickled, who: str = "it") -> Iterator[WantedImport]:
    """Yield the imports of a pickle that do not belong to tensors and containers."""
    for one in found.imports:
        if not is_of_tensors(one):
            said = f"{who} wants to import {shown_name(str(one))}, and nothing was imported"
            yield WantedImport(said, one, one in found.called)
