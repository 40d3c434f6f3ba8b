"""The three modes that a user chooses from, and what each asks of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypedDict

from tensornp.core.lowlevel.quoted import quoted
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
