"""Kernels that need not import torch: each is forked from a process that has.

``serve NAME`` is that process, and listens at a socket of that name. ``NAME ARGUMENTS`` stands for a kernel of these
arguments: it hands over its folder, its environment and its outputs, passes on signals, and ends as the kernel does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time

TIMEOUT_S = 200


def serve(name: str) -> None:
    """Fork a keeper for each kernel, and from it the kernel, until the process is gone that started this one."""
    import anywidget  # noqa: F401
    import ipykernel.kernelapp  # noqa: F401
    import torch  # noqa: F401

    gc.freeze()
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        listener.settimeout(10)
        while os.getppid() == parent:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if not os.fork():
                listener.close()
                return keep(connection)
            connection.close()


def keep(connection: socket.socket) -> None:
    """Be the parent of a kernel: pass on signals, kill it once nobody stands for it, and tell how it ended."""
    message, outputs, _, _ = socket.recv_fds(connection, 2**20, 3)
    if not (kernel := os.fork()):
        connection.close()
        return run(outputs, **json.loads(message))

    def pass_on() -> None:
        while numbers := connection.recv(1):
            _send(kernel, numbers[0])
        _send(kernel, signal.SIGKILL)

    threading.Thread(target=pass_on, daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(bytes([status % 256]))
    os._exit(0)


def _send(kernel: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(kernel, number)


def run(outputs: list[int], folder: str, environment: dict[str, str], arguments: list[str]) -> None:
    """Be a kernel."""
    os.setsid()
    for number, output in enumerate(outputs):
        os.dup2(output, number)
        os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ |= environment | {"JPY_PARENT_PID": str(os.getppid())}
    # The folder of this file, where a kernel has its own, which it takes out.
    sys.path[0] = ""
    sys.argv[1:] = arguments
    with contextlib.suppress(SystemExit):
        runpy.run_module("ipykernel_launcher", run_name="__main__")
    # To take torch apart takes longer than all else that a kernel does.
    atexit._run_exitfuncs()
    os._exit(0)


def stand_for_kernel(name: str, *arguments: str) -> int:
    """Have a kernel forked, and return its status once it has ended."""
    connection, end = socket.socket(socket.AF_UNIX), time.monotonic() + TIMEOUT_S
    while connection.connect_ex(f"\0{name}") and time.monotonic() < end:
        time.sleep(0.05)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    told = {"folder": os.getcwd(), "environment": dict(os.environ), "arguments": arguments}
    socket.send_fds(connection, [json.dumps(told).encode()], [0, 1, 2])
    return (connection.recv(1) or b"\1")[0]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(stand_for_kernel(*sys.argv[1:]))
