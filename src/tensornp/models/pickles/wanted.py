"""Name the imports of a pickle that nothing here carries out, and tell alarming from harmless ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.reader import Import, Pickled
from tensornp.models.pickles.torch_pickle import is_of_tensors

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

    __slots__ = ("is_called", "wanted")
    wanted: Import
    is_called: bool

    @classmethod
    def of(cls, wanted: Import, *, is_called: bool, who: str = "it") -> WantedImport:
        made = cls(f"{who} wants to import {shown_name(str(wanted))}, and nothing was imported")
        made.wanted, made.is_called = wanted, is_called
        return made

    def retold(self, said: str) -> WantedImport:
        made = WantedImport(said)
        made.wanted, made.is_called = self.wanted, self.is_called
        return made

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
            yield WantedImport.of(one, is_called=one in found.called, who=who)
