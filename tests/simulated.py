"""Ranks that are simulated in this process: each has names of its own, and may die, hang, be late or lie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from tensornp.processes import answering

Deed = Callable[[Callable[[], Any]], Any]
"""What a process does when it is asked, given what would answer: returns an answer, or a Future, or raises."""


TIMERS: list[threading.Timer] = []


class Simulated:
    """A transport to processes that answer at once, each with its own names, unless its `deeds` are others."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, names: Mapping[Any, Mapping[str, Any]], *,
        has_group: bool = False, deeds: Mapping[Any, Deed] | None = None,
    ) -> None:  # fmt: skip
        self.names, self.deeds = dict(names), dict(deeds or {})
        self.asked: list[tuple[Any, ...]] = []
        self.places: dict[Any, tuple[int | None, int]] = {
            id: (i, len(self.names)) if has_group else (None, 0) for i, id in enumerate(self.names)
        }
        self._here = threading.local()
        monkeypatch.setattr(answering, "_names", lambda: dict(self.names[self._here.id]))
        monkeypatch.setattr(answering, "_place", lambda: self.places[self._here.id])

    @property
    def ids(self) -> Iterable[Any]:
        return list(self.names)

    def submit(self, id: Any, function: Callable[..., Any], *args: Any) -> Any:
        self.asked.append((id, *args[1:]))

        def answered() -> Any:
            self._here.id = id
            return function(*args)

        future: Future[Any] = Future()
        try:
            found = self.deeds.get(id, lambda answer: answer())(answered)
        except Exception as error:
            future.set_exception(error)
            return future
        if isinstance(found, Future) or not isinstance(found, tuple | list | str | int | bytes | None):
            return found
        future.set_result(found)
        return future


class Here:
    """A transport to this process alone, which finds `obj` under the name ``looked_at`` as its main script would."""

    ids = (0,)

    def __init__(self, obj: Any) -> None:
        self._obj = obj

    def submit(self, id: int, function: Callable[..., Any], *args: Any) -> Any:
        import __main__

        __main__.looked_at = self._obj  # type: ignore[attr-defined]
        try:
            future: Future[Any] = Future()
            future.set_result(function(*args))
            return future
        finally:
            del __main__.looked_at  # type: ignore[attr-defined]


def hang(_: Any) -> Future[Any]:
    return Future()


def late(seconds: float) -> Deed:
    """Answer after so many seconds, in another thread."""

    def deed(answer: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        timer = threading.Timer(seconds, lambda: future.set_result(answer()))
        timer.daemon = True
        timer.start()
        TIMERS.append(timer)
        return future

    return deed


def end_timers() -> None:
    """End the threads of those that are late still: others look whether any runs."""
    while TIMERS:
        TIMERS[-1].cancel()
        TIMERS.pop().join()


def raising(error: BaseException) -> Deed:
    def deed(_: Any) -> Any:
        raise error

    return deed


def saying(answer: Any) -> Deed:
    """Say something else."""
    return lambda _: answer
