"""Kernels of their own for tests, which give a busy machine the time that it takes."""

from __future__ import annotations

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

TIMEOUT_S = 600


def start_kernel() -> tuple[KernelManager, BlockingKernelClient]:
    """Start a kernel of this Python, and return its manager and a client."""
    return start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT_S)
