"""The steps that a conversion is made of, and the three modes that a user chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypedDict

from tensornp.errors import BadRequestError


class Step(StrEnum):
    """One step of a conversion, in the words of PyTorch and NumPy, listed in the order in which they are done."""

    WAIT = "wait"
    TO_LOCAL = "to local"
    UNBIND = "unbind"
    DETACH = "detach"
    TO_HOST = "copy to host"
    TO_DENSE = "to dense"
    DEQUANTIZE = "dequantize"
    RESOLVE_CONJ = "resolve conjugate"
    RESOLVE_NEG = "resolve negative"
    UNPACK = "unpack"
    WIDEN = "widen"
    COPY = "copy"
    VIEW_BITS = "view bits"
    CAST = "cast"
    MASK = "mask"


class ModeArguments(TypedDict):
    """What a mode passes on to `to_numpy`."""

    copy: bool | None
    writeable: bool | None


MODES: Mapping[str, ModeArguments] = MappingProxyType(
    {
        "view": {"copy": None, "writeable": None},
        "share": {"copy": False, "writeable": True},
        "copy": {"copy": True, "writeable": None},
    }
)
"""The three modes by name: view (live, read-only), share (live, writeable), copy."""


def mode_arguments(mode: str) -> ModeArguments:
    """Return what `mode` passes to `to_numpy`; `BadRequestError` for any other word."""
    if mode not in MODES:
        raise BadRequestError(f"{mode!r} is not a mode; choose view, share or copy")
    return MODES[mode]
