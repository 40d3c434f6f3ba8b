"""What a user has given, in the few words that an error has for it."""

from __future__ import annotations

import reprlib

from tensornp.core.lowlevel.legible import legible

_MOST = 60
_MAX_BITS = 190
"""Of an integer that is written: Python refuses some thousands of digits."""


def quoted(value: object) -> str:
    """Return the `repr` of a value as one line, cut; of what has none, or is a tensor or an array, its class."""
    # They bring torch, which a shell need not have imported.
    from tensornp.core.lowlevel.attributes import is_array, is_tensor

    if is_tensor(value) or is_array(value):
        # Its own may read it, and even end the process.
        return _class_of(value)
    try:
        return _cut(_REPR.repr(value))
    except Exception:
        # It goes by the name of the class, which a class of the user's may have as well.
        return _class_of(value)


class _Quoted(reprlib.Repr):
    """As `repr`, of which only so much is made as is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = _MOST
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        """Return an integer, or how long it is."""
        return repr(x) if x.bit_length() <= _MAX_BITS else f"<int of {x.bit_length():,} bits>"

    def repr_instance(self, x: object, level: int) -> str:
        """Return what an object says of itself, whatever it raises."""
        try:
            return _cut(str.__str__(repr(x)))
        except Exception:
            return _class_of(x)


def _class_of(value: object) -> str:
    from tensornp.core.lowlevel.attributes import class_name

    return f"<{class_name(type(value))}>"


def _cut(text: str) -> str:
    shown = legible(text[: _MOST + 1])
    return shown if len(shown) <= _MOST else shown[: _MOST - 1] + "…"


_REPR = _Quoted()
