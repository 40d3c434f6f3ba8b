"""Who counts as running code, and who only serves."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import multiprocessing
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from child import in_fork

import tensornp as tnp


@pytest.mark.slow
@in_fork
def test_a_process_that_asyncio_waits_for_hides_no_gradient():
    """Up to Python 3.11 a thread waits for it, which runs nothing of the user's."""
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)

    async def look() -> bool | None:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
        try:
            return tnp.inspect(p).has_grad
        finally:
            await child.communicate(b"\n")

    assert asyncio.run(look()) is True


@pytest.mark.slow
@in_fork
def test_workers_that_compile_for_torch_hide_no_gradient():
    """A thread reads what they send, once something was compiled with them; it runs nothing of the user's."""
    from torch._inductor.compile_worker.subproc_pool import SubprocPool

    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    pool = SubprocPool(1)
    assert threading.active_count() > 1
    assert tnp.inspect(p).has_grad is True
    pool.shutdown()


@in_fork
def test_the_thread_by_which_a_kernel_of_spyder_looks_after_its_parent_hides_no_gradient():
    """As its packages name it, which do not go with ours."""
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    ended = threading.Event()
    names = {"__module__": "spyder_kernels.console.kernelapp", "run": lambda _: ended.wait()}
    poller = type("SpyderParentPoller", (threading.Thread,), names)()
    poller.start()
    try:
        assert tnp.inspect(p).has_grad is True
    finally:
        ended.set()
        poller.join()


@pytest.mark.slow
@in_fork
def test_loops_that_are_compiled_after_ctrl_c_hide_no_gradient():
    """The thread that compiles goes on, and is none of the user's."""
    from tensornp.core.values.stats import fast

    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    is_over, main = threading.Event(), threading.get_ident()

    def compile_for_long() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        is_over.wait(60)

    fast._is_there = lambda: True
    with pytest.raises(KeyboardInterrupt):
        fast.loaded(compile_for_long)
    assert threading.active_count() > 1
    assert tnp.inspect(p).has_grad is True
    is_over.set()


@pytest.mark.slow
@in_fork
def test_a_thread_whose_module_has_no_name_runs():
    """Code that `exec` runs has none, nor have those modules of ours that are silent: that is no word for rest."""
    from tensornp.core.lowlevel import threads

    assert not threads.others_run()
    done: list[bool] = []
    code = "import time\nwhile not done:\n    time.sleep(0.001)"
    thread = threading.Thread(target=exec, args=(code, {"done": done}))
    thread.start()
    try:
        assert all(threads.others_run() for _ in range(1000))
    finally:
        done.append(True)
        thread.join()


@in_fork
def test_threads_that_look_at_each_other_keep_no_tensor():
    """Frames in a circle would keep it until the garbage collector comes by, and a card call a deleted one alive."""
    from tensornp.core.lowlevel import threads

    together, take = threading.Barrier(2), threads.current_frames

    def take_together() -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(1)
        frames = take()
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(1)
        return frames

    def look() -> None:
        tensor = torch.zeros(3)
        seen.append(weakref.ref(tensor))
        threads.others_run()

    gc.disable()
    threads.current_frames = take_together
    seen: list[weakref.ref[torch.Tensor]] = []
    both = [threading.Thread(target=look) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert [tensor() for tensor in seen] == [None, None]


def _while_a_subshell(does: Callable[[], None]) -> bool | None:
    """Return what a look says of the gradient of a parameter while a subshell of the kernel `does` something."""
    zmq, subshell = pytest.importorskip("zmq"), pytest.importorskip("ipykernel.subshell")
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    tnp.inspect(p)
    begun = threading.Event()
    thread = subshell.SubshellThread("1", zmq.Context(), daemon=True)
    thread.start()
    thread.io_loop.add_callback(lambda: (begun.set(), does()))
    assert begun.wait(60)
    return tnp.inspect(p).has_grad


@in_fork
def test_a_page_that_is_answered_meanwhile_hides_no_gradient():
    """After Run All the widget of one card is answered in a subshell while the next card is made."""
    from tensornp.widget.answering import AnsweringWidget

    answered = []
    widget = AnsweringWidget({"ask": lambda _: answered.append(time.sleep(0.05)) or {}})
    request = {"type": "ask", "page": "1", "number": 1}
    message = {"content": {"data": {"method": "custom", "content": request}}}
    assert _while_a_subshell(lambda: widget._handle_msg(message)) is True
    assert answered, "the look has waited"


@in_fork
def test_whoever_does_not_stop_in_a_subshell_is_not_waited_for_long():
    """What runs there may be the user's backward; each cell pays once for that."""
    begun = time.monotonic()
    assert _while_a_subshell(lambda: time.sleep(3600)) is None
    first = time.monotonic() - begun
    p = torch.nn.Parameter(torch.ones(2))
    assert [tnp.inspect(p).has_grad for _ in range(100)] == [None] * 100
    assert time.monotonic() - begun < first + 20, "a hundred looks would have waited for 25 s"


_held: list[Any] = []
"""What asyncio itself does not keep."""


async def _sleeps() -> None:
    while True:
        await asyncio.sleep(0.01)


async def _computes() -> None:
    while True:
        await asyncio.sleep(0)


async def _imports_ahead() -> None:
    """Have our modules imported in an hour."""
    from tensornp.fronts.ipython import ahead

    ahead.IDLE_S = 3600
    ahead.Ahead().after_cell(None)


def _loop(*coroutines: Callable[[], Any], timer: Callable[[], None] | None = None) -> Callable[[], None]:
    """Return what begins to run such a loop in a thread."""

    def begin() -> None:
        loop = asyncio.new_event_loop()
        _held.extend(loop.create_task(one()) for one in coroutines)
        if timer is not None:
            loop.call_later(3600, timer)
        threading.Thread(target=loop.run_forever, daemon=True).start()

    return begin


def _pool(*work: tuple[Any, ...]) -> Callable[[], None]:
    def begin() -> None:
        pool = concurrent.futures.ThreadPoolExecutor(1)
        pool.submit(int).result()
        for one in work:
            pool.submit(*one)
        _held.append(pool)

    return begin


def _tornado() -> None:
    ioloop = pytest.importorskip("tornado.ioloop")
    loops = []

    def run() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        loops.append(ioloop.IOLoop.current())
        loops[0].call_later(3600, print)

    made = threading.Thread(target=run)
    made.start()
    made.join()
    threading.Thread(target=loops[0].start, daemon=True).start()


def _reader() -> None:
    loop = asyncio.new_event_loop()
    ends = socket.socketpair()
    _held.extend(ends)
    loop.add_reader(ends[0], print)
    threading.Thread(target=loop.run_forever, daemon=True).start()


class _Slow:
    """What takes long to be pickled."""

    def __reduce__(self) -> Any:
        time.sleep(3600)


def _queue(obj: object) -> Callable[[], None]:
    def begin() -> None:
        queue: Any = multiprocessing.Queue()
        queue.put(obj)
        _held.append(queue)

    return begin


def _cell() -> None:
    from ipykernel.zmqshell import ZMQInteractiveShell
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    threading.Thread(target=ZMQInteractiveShell.instance().run_cell, args=("import time; time.sleep(3600)",),
                     daemon=True).start()  # fmt: skip


THREADS: dict[str, tuple[Callable[[], None], bool]] = {
    "a loop with nothing to do": (_loop(), False),
    "a loop with a task that sleeps": (_loop(_sleeps), True),
    "a loop with a task that computes": (_loop(_computes), True),
    "a loop with a timer": (_loop(timer=print), True),
    "a loop that is to import what a card needs": (_loop(_imports_ahead), False),
    "a loop of tornado with a timer": (_tornado, True),
    "a pool with nothing to do": (_pool(), False),
    "a pool in a function of C": (_pool((time.sleep, 3600)), True),
    "a pool in a function of Python": (_pool((_sleeps,), (threading.Event().wait,)), True),
    "a loop that a socket may wake": (_reader, True),
    "a queue with nothing to send": (_queue(1), False),
    "a queue that sends": (_queue(_Slow()), True),
    "a cell of a kernel's shell": (_cell, True),
    "a timer": (lambda: threading.Timer(3600, print).start(), True),
}
"""What begins a thread, and whether that runs code of the user's, now or soon."""


@pytest.mark.parametrize("name", THREADS)
@in_fork
def test_whoever_may_wake_runs(name):
    """A thread that waits is at rest only where nothing of the user's is to wake it."""
    from tensornp.core.lowlevel import threads

    begin, runs = THREADS[name]
    begin()
    if runs:
        time.sleep(0.1)
        assert all(threads.others_run() for _ in range(1000))
    else:
        # It may be on its way to where it waits.
        deadline = time.monotonic() + 60
        while threads.others_run():
            assert time.monotonic() < deadline
        assert not any(threads.others_run() for _ in range(1000))


@in_fork
def test_the_thread_that_began_a_backward_waits_for_those_of_its_devices():
    """It is in that call, of which there is one; another that is in such a call runs."""
    from tensornp.core.lowlevel import threads

    def engine(lock: Any) -> None:
        lock.acquire()

    locks, found = [threading.Lock(), threading.Lock()], []
    for lock in locks:
        lock.acquire()
    other = threading.Thread(target=engine, args=(locks[1],))

    def of_a_device() -> None:
        time.sleep(0.1)
        found.extend([threads.others_run(), threads.others_run(engine.__code__)])
        other.start()
        time.sleep(0.1)
        found.append(threads.others_run(engine.__code__))
        for lock in locks:
            lock.release()

    threading.Thread(target=of_a_device).start()
    engine(locks[0])
    other.join()
    assert found == [True, False, True]
