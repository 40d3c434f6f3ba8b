"""Name the steps of a conversion and the choices of ``shard=``; importing it needs no torch."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError


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


class Obstacle(NamedTuple):
    detail: str
    """After "a float32 tensor": "with the conjugate bit set"; empty if dtype and device say it already."""
    clause: str
    """After "copy: ": "on cuda:0"."""


def check_shard(shard: object) -> None:
    if shard is not None and not (isinstance(shard, str) and shard in ("local", "full")):
        raise BadRequestError(f'shard must be "local", "full" or None, got {quoted(shard)}')
