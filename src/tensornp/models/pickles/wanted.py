"""Name the imports of a pickle that nothing here carries out, and tell alarming from harmless ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.reader import Import, Pickled
from tensornp.models.pickles.torch_pickle import is_of_tensors

_CLASS_NAME = re.compile(r"_?[A-Z]\w*", re.ASCII)
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
        ("builtins", "bytes"), ("__builtin__", "bytes"), ("builtins", "complex"), ("__builtin__", "complex"),
    }
)  # fmt: skip
"""Classes that hold values, and do nothing else when they are made."""


class WantedImport(str):
    """A problem: loading a file would import something, and nothing was imported here.

    Attributes
    ----------
    wanted : Import
    is_called : bool
        Whether it would also be called.
    """

    __slots__ = ("is_called", "wanted")
    wanted: Import
    is_called: bool

    @classmethod
    def of(cls, wanted: Import, *, is_called: bool, who: str = "it") -> WantedImport:
        """Return the problem of an import that `who` wants."""
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
        """Whether it is neither a class of torch nor one that merely holds values."""
        return tuple(self.wanted) not in _HOLDERS and not _is_class_of_torch(*self.wanted)


def _is_class_of_torch(module: str, name: str) -> bool:
    """Return whether an import is a layer, an optimizer or a sharded tensor, by its name alone."""
    if name in _CLASSES_OF_SHARDS:
        return module.startswith(_MODULES_OF_SHARDS)
    # These modules have no function with such a name.
    return module.startswith(_MODULES_OF_CLASSES) and _CLASS_NAME.fullmatch(name) is not None


def wanted_of(found: Pickled, who: str = "it") -> Iterator[WantedImport]:
    """Yield the imports of a pickle that do not belong to tensors and containers."""
    for one in found.imports:
        if not is_of_tensors(one):
            yield WantedImport.of(one, is_called=one in found.called, who=who)
