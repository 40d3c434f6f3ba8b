"""Kernels of their own for tests, which give a busy machine the time that it takes."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

TIMEOUT_S = 600


def start_kernel() -> tuple[KernelManager, BlockingKernelClient]:
    """Start a kernel of this Python, and return its manager and a client.

    Between the choice of its ports and its use of them, another kernel may have taken one: a second is started then.
    """
    try:
        return start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT_S)
    except RuntimeError:
        return start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT_S)


@contextmanager
def warm_kernels(folder: Path) -> Iterator[None]:
    """Have whoever has `folder` as ``JUPYTER_PATH`` take kernels from a process that has imported torch, on Linux."""
    if sys.platform != "linux":
        yield
        return
    file, name = Path(__file__).with_name("warm_kernel.py"), f"warm-{secrets.token_hex(8)}"
    spec = {
        "argv": [sys.executable, str(file), name, "-f", "{connection_file}"], "display_name": "Python 3",
        "language": "python", "metadata": {"debugger": True}, "kernel_protocol_version": "5.5",
    }  # fmt: skip
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    with subprocess.Popen([sys.executable, file, "serve", name]) as process:
        try:
            yield
        finally:
            process.kill()
