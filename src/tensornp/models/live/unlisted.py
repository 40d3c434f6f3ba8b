"""Name the objects of a container that are not looked into."""

from __future__ import annotations

import types
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.names.quoted import MAX_INSIDE, cut

MAX_NAMED = 1000
"""Objects with a class in the metadata."""
_MAX_SAID = 4
_HOLD_NONE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Unlisted:
    """Objects of a container without listed weights."""

    def __init__(self) -> None:
        self._noted: list[tuple[str, Any]] = []
        self._listed: set[int] = set()

    def note(self, name: str, obj: Any) -> None:
        """Take an object by its name."""
        self._noted.append((name, obj))

    def is_listed(self, obj: Any) -> None:
        """Note that the weights of an object are listed."""
        self._listed.add(id(obj))

    def named(self) -> dict[str, str]:
        """Return the class of each object, by its name, of the first that were taken."""
        return {name: type(obj).__name__ for name, obj in self._noted[:MAX_NAMED]}

    def _is_known(self, obj: Any) -> bool:
        cls = type(obj)
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
