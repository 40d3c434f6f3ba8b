"""What NumPy prints where a formatter of the user's raises: its own print, and a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from tensornp.core.lowlevel.attributes import error_text

_OWN = ("formatter", "override_repr")
"""Print options that are code of the user's; `np.printoptions` resets both."""
_T = TypeVar("_T")


def printed_without(error: Exception, show: Callable[[], _T]) -> tuple[_T, str]:
    """Return what `show` gives without the formatters of the print options, one of which may have raised `error`.

    With it comes a note that says so. Where there are none, `error` is raised.
    """
    options = np.get_printoptions()
    given = " or ".join(name for name in _OWN if options.get(name) is not None)
    if not given:
        raise error
    with np.printoptions():
        return show(), f"printed without the {given} of NumPy's print options, which raised {error_text(error)}"
