"""A bar that tells how far a reading of files has come, where that takes long enough to be told."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

from tensornp.errors import BadRequestError

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many were read; where it returns False, a scan ends as by Ctrl-C."""
_DELAY_S = 1.0


def _an_instance(obj: object) -> str:
    # It needs torch, which waits until there is something to compare.
    from tensornp.core.lowlevel.attributes import an_instance

    return an_instance(obj)


@contextmanager
def progress_of(chosen: Progress | Literal[False] | None, what: str) -> Iterator[Progress | None]:
    """Return what is told of the progress: what the user has chosen, nothing for False, and for None a bar."""
    if chosen is not None:
        if chosen is not False and not callable(chosen):
            raise BadRequestError(f"progress is a function of two numbers, or False, not {_an_instance(chosen)}")
        yield chosen or None
        return
    bar = _LateBar(what)
    try:
        yield bar.tell
    finally:
        bar.close()


class _LateBar:
    """A bar that appears after a second, if at all."""

    def __init__(self, what: str) -> None:
        self._what, self._begin = what, time.monotonic()
        self._bar: _ConsoleBar | None = None
        self._is_broken = False

    def tell(self, done: int, total: int) -> None:
        if self._is_broken or (self._bar is None and (time.monotonic() - self._begin < _DELAY_S or done >= total)):
            return
        with self._whatever_it_is_written_to():
            if self._bar is None:
                self._bar = _ConsoleBar(self._what)
            self._bar.tell(done, total)

    def close(self) -> None:
        if self._bar is not None:
            with self._whatever_it_is_written_to():
                self._bar.close()

    @contextmanager
    def _whatever_it_is_written_to(self) -> Iterator[None]:
        """Go on without a bar where nothing can be written: the output is closed, or is none."""
        try:
            yield
        except Exception:
            # What was read matters, and not the bar.
            self._is_broken = True


class _NeverRaises:
    """A file, if any, on which no write raises: tqdm would keep its lock, for which all bars of other threads wait."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> None:
        with suppress(Exception):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(Exception):
            self._file.flush()


class _ConsoleBar:
    """A bar of tqdm on stderr, which is cleared at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: Any = None

    def tell(self, done: int, total: int) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

        if self._bar is None:
            # What was read before says nothing of the speed from now on.
            self._bar = tqdm(
                total=total, initial=done, desc=self._what, unit="B", unit_scale=True, leave=False,
                file=_NeverRaises(sys.stderr),
            )  # fmt: skip
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
