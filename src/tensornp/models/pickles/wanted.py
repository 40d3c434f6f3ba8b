"""`WantedImport`: a problem of a pickle that wants to import something, and whether one should be alarmed by it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.plain_calls import COMPLEX
from tensornp.models.pickles.records import Global, XRay
from tensornp.models.pickles.tensors import KNOWN_IMPORTS

_MODULES_OF_CLASSES = ("torch.nn.modules.", "torch.optim.")
_CLASSES_OF_SHARDS = frozenset(
    {"DTensor", "DTensorSpec", "DeviceMesh", "Partial", "Replicate", "Shard", "TensorMeta", "_StridedShard"}
)
_MODULES_OF_SHARDS = ("torch.distributed.tensor", "torch.distributed._tensor", "torch.distributed.device_mesh")
_HOLDERS = frozenset(
    {
        ("argparse", "Namespace"), ("types", "SimpleNamespace"), ("pathlib", "PosixPath"), ("pathlib", "WindowsPath"),
        ("pathlib._local", "PosixPath"), ("pathlib._local", "WindowsPath"), ("datetime", "datetime"),
        ("datetime", "timedelta"), ("_codecs", "encode"), ("decimal", "Decimal"), ("uuid", "UUID"),
        ("numpy", "dtype"), ("numpy", "ndarray"), ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"), ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"), ("torch", "ScriptObject"),
        ("builtins", "bytes"), ("__builtin__", "bytes"), *COMPLEX,
    }
)  # fmt: skip
"""What holds values, and does nothing else when it is made."""


class WantedImport(str):
    """A problem: that loading a file would import something, which nothing here does.

    Attributes
    ----------
    wanted : Global
    is_called : bool
        Whether it would be called besides.
    """

    __slots__ = ("is_called", "wanted")
    wanted: Global
    is_called: bool

    @classmethod
    def of(cls, wanted: Global, *, is_called: bool, who: str = "it") -> WantedImport:
        """Return the problem in words, for `who` wants it."""
        made = cls(f"{who} wants to import {shown_name(str(wanted))}, and nothing was imported")
        made.wanted, made.is_called = wanted, is_called
        return made

    def retold(self, said: str) -> WantedImport:
        """Return the same problem in other words."""
        made = WantedImport(said)
        made.wanted, made.is_called = self.wanted, self.is_called
        return made

    @property
    def is_alarm(self) -> bool:
        """Whether it is anything but a class of torch's own, or one that merely holds values."""
        return tuple(self.wanted) not in _HOLDERS and not _is_class_of_torch(*self.wanted)


def _is_class_of_torch(module: str, name: str) -> bool:
    """Return whether a name is that of a layer, an optimizer or a sharded tensor, in the module that defines it."""
    if name in _CLASSES_OF_SHARDS:
        return module.startswith(_MODULES_OF_SHARDS)
    if not module.startswith(_MODULES_OF_CLASSES):
        return False
    # Those came with torch; nothing is imported for the question.
    if "torch" not in sys.modules:
        return name in _classes_in(module)
    home = sys.modules.get(module)
    own = vars(home).get(name) if home is not None else None
    return isinstance(own, type) and own.__module__ == module


@cache
def _classes_in(module: str) -> frozenset[str]:
    """Return the classes that a module of torch defines by its source; none of what is no module of it."""
    package, *below = module.split(".")
    found = find_spec(package) if all(part.isidentifier() for part in below) else None
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        with suppress(OSError):
            source = Path(folder, *below).with_suffix(".py").read_text(encoding="utf-8")
            return frozenset(re.findall(r"^class (\w+)", source, re.MULTILINE))
    return frozenset()


def wanted_of(found: XRay, who: str = "it") -> Iterator[WantedImport]:
    """Yield what a pickle would import besides what belongs to tensors and containers."""
    for one in found.imports:
        if tuple(one) not in KNOWN_IMPORTS:
            yield WantedImport.of(one, is_called=one in found.called, who=who)
