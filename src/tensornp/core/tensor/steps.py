"""The steps that a conversion is made of."""

from __future__ import annotations

from enum import StrEnum


class Step(StrEnum):
    """The steps of a conversion, in their order."""

    STAND_IN = "stand in"
    WAIT = "wait"
    TO_LOCAL = "to local"
    GATHER = "gather from all ranks"
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
