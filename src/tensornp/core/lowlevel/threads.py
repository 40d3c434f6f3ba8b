"""Whether anybody else runs code meanwhile: what torch does not guard can only be read while nobody does."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import multiprocessing.queues
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any, Literal
from weakref import WeakKeyDictionary

from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.locks import Lock

_SERVANTS = (
    "ipykernel.control", "ipykernel.heartbeat", "ipykernel.iostream", "ipykernel.parentpoller",
    "ipykernel.shellchannel", "IPython.core.history", "asyncio.unix_events", "jupyter_client", "jupyter_core", "zmq",
    "tornado.platform.asyncio.SelectorThread", "tqdm", "debugpy", "pydevd", "_pydevd_bundle", "_pydev_bundle",
    "torch.utils.data._utils", "torch._inductor.compile_worker", "tensorboard", "wandb", "spyder_kernels.console",
    "marimo._messaging", "marimo._runtime.parent_poller", "marimo._runtime.runtime.Kernel.start_out_of_band_worker",
)  # fmt: skip
"""Where the threads are from that serve the kernel, the debugger or a progress bar, and run no code of the user's."""
_LOOPS = ("asyncio", "tornado", "ipykernel.subshell")
_ANSWERING, _OWN = ("ipykernel.subshell",), "tensornp "
"""Where the threads are from in which pages are answered while a cell runs, and how the names of ours begin."""
_OWN_SERVANT = "tensornp: "
"""How the names of those of ours begin that read nothing: one compiles, and goes on after Ctrl-C."""
_PATIENCE_S, _PAUSE_S = 0.25, 0.001
"""For how long they are waited for in all, from the beginning of one cell to that of the next."""
Role = Literal["servant", "loop", "pool", "feeder", "user"]
"""Of a thread: a loop runs what it is sent, in a subshell of the kernel for one; a pool what it is given to do.

A feeder pickles what is put into a queue between processes, and moves the memory of tensors to do so.
"""

_MAX_CORES = 16
GATE = Lock()
"""Held while something is read that torch does not guard; a cell takes it for a moment when it begins."""
_LOOKING = Lock()
"""Held by the one thread that has the frames of others.

Two that looked at each other would keep what both hold: frames in a circle, with the user's tensors.
"""
if hasattr(os, "register_at_fork"):
    # Nobody would open what another thread had closed when the process was copied. The last one here is taken first, as
    # a thread does that asks behind the gate.
    for _lock in (_LOOKING, GATE):
        os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def at_once() -> Iterator[bool]:
    """Hold what a look takes for as long as the block lasts, where that can be had without waiting; tells whether.

    A debugger may have stopped the thread that has it, and would wait for ever.
    """
    with ExitStack() as held:
        is_free = True
        for lock in (GATE, _LOOKING):
            is_free = is_free and lock.acquire(blocking=False)
            if is_free:
                held.callback(lock.release)
        yield is_free


_roles: WeakKeyDictionary[threading.Thread, Role] = WeakKeyDictionary()


def num_cores() -> int:
    """Return how many cores this process may use; of many, as many as may have buffers of some MiB each."""
    # Not everywhere can a process be told which.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_CORES)


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


def others_run(caller: CodeType | None = None) -> bool:
    """Return whether another thread runs code of the user's, or may begin to while this one runs.

    It does if it is alive, and none of those that serve the kernel. A thread that runs what it is sent (the main one, a
    subshell's, that of an event loop) does while one of its cells runs, while it does not wait for the next event, or
    while a task or a timer may wake it. Costs some microseconds. Ask it behind the `GATE`, and a cell does not begin
    before what is done there is done. One thread that is in a call of the code `caller` waits for this one.
    """
    with _LOOKING:
        return _others_run(caller)


def _others_run(caller: CodeType | None) -> bool:
    frames = current_frames()
    del frames[threading.get_ident()]
    if not frames:
        return False
    waiting: dict[int, FrameType] = {}
    for thread in _started():
        ident = thread.ident or 0
        frame = frames.pop(ident, None)
        if frame is None:
            continue
        if frame.f_code is caller:
            caller = None
            continue
        if not _is_at_rest(thread, frame):
            return True
        if _roles[thread] != "servant":
            waiting[ident] = frame
    # Those that Python has not started are the user's, or a library's in the middle of something.
    return bool(frames) or (bool(waiting) and _have_gone_on(waiting))


class _Patience:
    """How long threads that answer pages are still waited for: of those, after Run All, one is often in the middle."""

    def __init__(self) -> None:
        self._begun, self._left_s = -1, _PATIENCE_S

    def wait(self) -> bool:
        """Wait for a moment, and return True, where nobody runs who has not soon answered; it is to be asked again.

        An answer does not count as rest, since what it calls may be the user's. Call it while the `GATE` is open.
        """
        if self._begun != cells.begun:
            self._begun, self._left_s = cells.begun, _PATIENCE_S
        if self._left_s <= 0:
            return False
        with _LOOKING:
            has_only_answers = _only_answers_run()
        if not has_only_answers:
            return False
        begun = time.monotonic()
        time.sleep(_PAUSE_S)
        self._left_s -= time.monotonic() - begun
        return True


patience = _Patience()


def _only_answers_run() -> bool:
    """Return whether each other thread is at rest, or answers pages and runs no cell; call it while `_LOOKING`."""
    frames = current_frames()
    del frames[threading.get_ident()]
    for thread in _started():
        frame = frames.pop(thread.ident or 0, None)
        is_answering = thread.name.startswith(_OWN) or _is_from(thread, _ANSWERING)
        is_answering = is_answering and not cells.run_in(thread.ident)
        if frame is not None and not is_answering and not _is_at_rest(thread, frame):
            return False
    return not frames


def _have_gone_on(waiting: Mapping[int, FrameType]) -> bool:
    """Return whether a thread that was said to wait has left its frame since: it was asked while it woke."""
    now = current_frames()
    # This thread's own frame and the name here would keep each other, and all that called, until they are collected.
    del now[threading.get_ident()]
    return any(now.get(ident) is not frame for ident, frame in waiting.items())


def current_frames() -> dict[int, FrameType]:
    """Return the frame of each thread, with the garbage collector held back for that moment.

    Python 3.11.7, for one, may stop for good otherwise: collecting lets another thread in, which waits for the list of
    threads that is being read (python/cpython#106883).
    """
    with uncollected():
        return sys._current_frames()


def _started() -> list[threading.Thread]:
    """Return all threads that Python has started: with those that debugpy hides from its list, its own and a kernel's.

    By the private name of what that lists, which needs no lock; a thread that the debugger has stopped may have that.
    """
    return list(getattr(threading, "_active", {}).values()) or threading.enumerate()


def _is_at_rest(thread: threading.Thread, frame: FrameType) -> bool:
    role = _roles.get(thread)
    if role is None:
        role = _roles[thread] = _role_of(thread)
    if role == "servant":
        return True
    waits = _WAITS.get(role)
    return (waits is not None and not cells.run_in(thread.ident) and waits(frame)) or _is_stopped(frame)


def _is_stopped(frame: FrameType) -> bool:
    """Return whether debugpy has stopped a thread, and no thread of torch's does a part of a backward for it."""
    places = _places(frame) if "pydevd" in sys.modules else []
    return ("pydevd", "_do_wait_suspend") in places and "_engine_run_backward" not in [name for _, name in places]


def _places(frame: FrameType | None) -> list[tuple[str, str]]:
    """Return the modules and the functions that a thread is in, the innermost first."""
    places = []
    while frame is not None:
        places.append((str(frame.f_globals.get("__name__")), frame.f_code.co_name))
        frame = frame.f_back
    return places


def _loop_waits(frame: FrameType) -> bool:
    """Return whether a loop waits for an event, and is to do nothing by itself meanwhile: no task, and no timer."""
    if frame.f_globals.get("__name__") != "selectors":
        return False
    loop: Any = None
    is_of_kernel, turn = False, frame.f_back
    while turn is not None:
        if turn.f_code is _TURN_OF_LOOP and loop is None:
            loop = turn.f_locals.get("self")
        is_of_kernel = is_of_kernel or str(turn.f_globals.get("__name__")).startswith("ipykernel.")
        turn = turn.f_back
    # By private names of asyncio, which has no public way to ask; without them nothing is said to rest.
    if (
        loop is None
        or not all(map(_is_cancelled, getattr(loop, "_scheduled", (None,))))
        or getattr(loop, "_ready", True)
    ):
        return False
    if not is_of_kernel and not _listens_to_itself_alone(loop):
        return False
    return all(map(_is_of_kernel, asyncio.all_tasks(loop)))


def _is_cancelled(timer: asyncio.TimerHandle | None) -> bool:
    return timer is not None and timer.cancelled()


def _listens_to_itself_alone(loop: Any) -> bool:
    """Return whether no socket or pipe can wake a loop but its own, by which other threads do."""
    selector = getattr(loop, "_selector", None)
    watched = selector.get_map() if selector is not None else None
    return watched is not None and len(watched) <= 1


def _is_of_kernel(task: asyncio.Task[Any]) -> bool:
    frame = getattr(task.get_coro(), "cr_frame", None)
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("ipykernel.")


def _worker_waits(frame: FrameType) -> bool:
    """Return whether a worker of a pool waits for work, and there is none."""
    if frame.f_code is not _WORK_OF_POOL:
        return False
    held = frame.f_locals
    return held.get("work_item") is None and "work_queue" in held and bool(held["work_queue"].empty())


def _feeder_waits(frame: FrameType) -> bool:
    """Return whether the feeder of a queue waits for something to send, and there is nothing."""
    feed = frame.f_back
    if frame.f_code is not threading.Condition.wait.__code__ or feed is None or feed.f_code is not _FEED_OF_QUEUE:
        return False
    held = feed.f_locals
    return "buffer" in held and not held["buffer"]


_FEED_OF_QUEUE = multiprocessing.queues.Queue._feed.__code__  # type: ignore[attr-defined]
_TURN_OF_LOOP = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]
_WORK_OF_POOL = concurrent.futures.thread._worker.__code__
_WAITS: dict[Role, Callable[[FrameType], bool]] = {"loop": _loop_waits, "pool": _worker_waits, "feeder": _feeder_waits}
"""Of those that can rest, whether they do; any other thread runs for as long as it lives."""


def _role_of(thread: threading.Thread) -> Role:
    """Return what a thread does, told by where its class is from, or the function that a plain thread runs."""
    if thread is threading.main_thread():
        return "loop"
    if _is_from(thread, ("concurrent.futures.thread",)):
        return "pool"
    if _is_from(thread, ("multiprocessing.queues.Queue",)):
        return "feeder"
    is_servant = thread.name.startswith(_OWN_SERVANT) or _is_from(thread, _SERVANTS)
    return "servant" if is_servant else "loop" if _is_from(thread, _LOOPS) else "user"


def _is_from(thread: threading.Thread, places: Iterable[str]) -> bool:
    """Return whether its class is from one of these places, or the function that a plain thread runs."""
    # `Thread` has no public word for it.
    target: Any = getattr(thread, "_target", None)
    names = [f"{getattr(of, '__module__', '')}.{getattr(of, '__qualname__', '')}." for of in (type(thread), target)]
    return any(name.startswith(f"{place}.") for name in names for place in places)
