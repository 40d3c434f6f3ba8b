"""What a user chooses from by a word: the three modes, with what each asks of a conversion, and the shards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypedDict

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError


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
        raise BadRequestError(f"{quoted(mode)} is not a mode; choose view, share or copy")
    return MODES[mode]


SHARDS = ("local", "full")
"""What may be asked for of a tensor that is spread over ranks: this rank's part, or all of it, gathered."""


def check_shard(shard: object) -> None:
    """Raise BadRequestError for what is neither None nor one of `SHARDS`."""
    if shard is not None and not (isinstance(shard, str) and shard in SHARDS):
        words = " or ".join(f'"{one}"' for one in SHARDS)
        raise BadRequestError(f"shard must be {words} or None, got {quoted(shard)}")
