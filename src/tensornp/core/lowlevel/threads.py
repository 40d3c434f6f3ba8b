"""Whether anybody else runs code meanwhile: what torch does not guard can only be read while nobody does."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from types import FrameType
from typing import Any, Literal
from weakref import WeakKeyDictionary

from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.locks import Lock

_SERVANTS = (
    "ipykernel", "IPython.core.history", "asyncio.unix_events", "jupyter_client", "jupyter_core", "zmq",
    "tornado.platform", "tqdm", "debugpy", "pydevd", "_pydevd_bundle", "_pydev_bundle", "multiprocessing.queues",
    "torch.utils.data", "tensorboard", "wandb",
)  # fmt: skip
"""Modules whose threads serve the kernel, the debugger or a progress bar, and run no code of the user's."""
_LOOPS = ("asyncio", "tornado", "ipykernel.subshell")
Role = Literal["servant", "loop", "pool", "user"]
"""Of a thread: a loop runs what it is sent, in a subshell of the kernel for one; a pool what it is given to do."""
_AT_REST: dict[Role, str] = {"loop": "selectors", "pool": "concurrent.futures.thread"}
"""The module in which each waits; one that is not here never does."""

GATE = Lock()
"""Held while something is read that torch does not guard; a cell takes it for a moment when it begins."""
if hasattr(os, "register_at_fork"):
    # Nobody would open a gate that another thread had closed when the process was copied.
    os.register_at_fork(before=GATE.acquire, after_in_parent=GATE.release, after_in_child=GATE.release)
_roles: WeakKeyDictionary[threading.Thread, Role] = WeakKeyDictionary()


class _Cells:
    """The cells that run, by thread, and how many have begun so far."""

    def __init__(self) -> None:
        self.begun = 0
        self._running: Counter[int] = Counter()

    def begin(self, *_: Any) -> None:
        """Note that a cell begins in this thread, once nobody reads any longer what it may change."""
        with GATE:
            self.begun += 1
            self._running[threading.get_ident()] += 1

    def end(self, *_: Any) -> None:
        """Note that it has ended."""
        with GATE:
            ident = threading.get_ident()
            self._running[ident] -= 1
            if self._running[ident] <= 0:
                del self._running[ident]

    def run_in(self, ident: int | None) -> bool:
        """Return whether one runs in that thread."""
        return ident in self._running


cells = _Cells()


def others_run() -> bool:
    """Return whether another thread runs code of the user's, or may begin to while this one runs.

    It does if it is alive, and none of those that serve the kernel. A thread that runs what it is sent (the main one, a
    subshell's, that of an event loop) does while one of its cells runs, or while it does not wait for the next event.
    Costs some microseconds. Ask it behind the `GATE`, and a cell does not begin before what is done there is done.
    """
    frames = current_frames()
    del frames[threading.get_ident()]
    if not frames:
        return False
    for thread in threading.enumerate():
        frame = frames.pop(thread.ident or 0, None)
        if frame is not None and not _is_at_rest(thread, frame):
            return True
    # Those that Python has not started are the user's, or a library's in the middle of something.
    return bool(frames)


def current_frames() -> dict[int, FrameType]:
    """Return the frame of each thread, with the garbage collector held back for that moment.

    Python 3.11.7, for one, may stop for good otherwise: collecting lets another thread in, which waits for the list of
    threads that is being read (python/cpython#106883).
    """
    with uncollected():
        return sys._current_frames()


def _is_at_rest(thread: threading.Thread, frame: FrameType) -> bool:
    role = _roles.get(thread)
    if role is None:
        role = _roles[thread] = _role_of(thread)
    if role == "servant":
        return True
    waits_in = _AT_REST.get(role)
    # A role that never rests, and a module without a name, such as those of ours that are silent, are both None.
    return waits_in is not None and frame.f_globals.get("__name__") == waits_in and not cells.run_in(thread.ident)


def _role_of(thread: threading.Thread) -> Role:
    """Return what a thread does, told by the module of its class, or of what a plain thread runs."""
    # `Thread` has no public word for it.
    target: Any = getattr(thread, "_target", None)
    owner = getattr(target, "__self__", None)
    modules = [f"{getattr(of, '__module__', '')}." for of in (type(thread), target, type(owner))]

    def is_of(packages: Iterable[str]) -> bool:
        return any(module.startswith(f"{package}.") for module in modules for package in packages)

    if thread is threading.main_thread():
        return "loop"
    if is_of(("concurrent.futures.thread",)):
        return "pool"
    return "servant" if is_of(_SERVANTS) and not is_of(("ipykernel.subshell",)) else "loop" if is_of(_LOOPS) else "user"
