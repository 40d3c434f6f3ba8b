"""Python's garbage collector, held back for a moment."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tensornp.core.lowlevel.locks import Held


def uncollected() -> AbstractContextManager[Any]:
    """Return a block in which nothing is collected, unless nothing is anyway; it is as it was after it.

    Whoever makes hundreds of thousands of objects that stay would have each of them visited several times.
    """
    return Held(gc.disable, gc.enable) if gc.isenabled() else nullcontext()
