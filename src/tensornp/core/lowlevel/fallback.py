"""If a view fails, show the next simpler one and log where it failed, once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import TypeVar

RAISE = "TENSORNP_RAISE"
"""The environment variable that lets errors out with their tracebacks."""
MAX_REASON = 200
_PACKAGE = Path(__file__).parents[2]
_told: set[str] = set()
_Made = TypeVar("_Made")


def first_that_works(what: str, way: Callable[[], _Made], *simpler: Callable[[str], _Made]) -> _Made:
    """Return the first result of some functions that do not raise; log each failure once."""
    try:
        return way()
    except Exception as error:
        reason = told(what, error)
    for one in simpler[:-1]:
        try:
            return one(reason)
        except Exception as error:
            told(what, error)
    return simpler[-1](reason)


def told(what: str, error: Exception) -> str:
    if os.environ.get(RAISE):
        raise error
    import logging

    from tensornp.core.lowlevel.attributes import error_text

    said, place = error_text(error), "a line of tensornp"
    for frame, line in walk_tb(error.__traceback__):
        if is_own(frame):
            place = f"{Path(frame.f_code.co_filename).relative_to(_PACKAGE).as_posix()}, line {line}"
    reason = f"{said if len(said) <= MAX_REASON else said[:MAX_REASON] + '…'}, in {place}"
    if place not in _told:
        _told.add(place)
        logging.getLogger("tensornp").warning(
            "%s could not be made (%s); %s=1 in the environment shows the traceback", what, reason, RAISE
        )
    return reason


def is_own(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)
