"""A progress bar for reads that take longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many were read; where it returns False, a scan ends as by Ctrl-C."""
_DELAY_S = 1.0


@contextmanager
def progress_of(chosen: Progress | Literal[False] | None, what: str) -> Iterator[Progress | None]:
    """Return the function that the user chose, None for False, and a bar for None."""
    if chosen is not None:
        if chosen is not False and not callable(chosen):
            raise BadRequestError(f"progress must be a function of two numbers or False, got {quoted(chosen)}")
        yield chosen or None
        return
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    bar = tqdm(desc=what, unit="B", unit_scale=True, leave=False, delay=_DELAY_S, disable=sys.stderr is None)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    with bar:
        yield tell
