"""A bar that tells how far a reading of files has come, where that takes long enough to be told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tensornp.errors import BadRequestError

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many were read; where it returns False, a scan ends as by Ctrl-C."""
_DELAY_S = 1.0


@contextmanager
def progress_of(chosen: Progress | Literal[False] | None, what: str) -> Iterator[Progress | None]:
    """Return what is told of the progress: what the user has chosen, nothing for False, and for None a bar."""
    if chosen is not None:
        if chosen is not False and not callable(chosen):
            raise BadRequestError(f"progress is a function of two numbers, or False, not a {type(chosen).__name__}")
        yield chosen or None
        return
    bar = _Bar(what)
    try:
        yield bar.tell
    finally:
        bar.close()


class _Bar:
    """A bar of tqdm, which appears after a second, as a widget in a notebook, and goes when all is done."""

    def __init__(self, what: str) -> None:
        self._what, self._begin = what, time.monotonic()
        self._bar: Any = None
        self._is_broken = False

    def tell(self, done: int, total: int) -> None:
        """Show that so many bytes of so many were read."""
        if self._is_broken or (self._bar is None and (time.monotonic() - self._begin < _DELAY_S or done >= total)):
            return
        with self._whatever_it_is_written_to():
            self._bar = self._bar or self._made(total)
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take it away."""
        if self._bar is not None:
            with self._whatever_it_is_written_to():
                self._bar.close()

    @contextmanager
    def _whatever_it_is_written_to(self) -> Iterator[None]:
        """Go on without a bar where nothing can be written: the output is closed, or is none."""
        try:
            yield
        except (OSError, ValueError, AttributeError):
            self._is_broken = True

    def _made(self, total: int) -> Any:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]

        return tqdm(total=total, desc=self._what, unit="B", unit_scale=True, leave=False)
