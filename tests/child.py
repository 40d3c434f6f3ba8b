"""Tests that run in processes of their own, since they change one for good, could end it, or could hang."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 200


def in_child(test: Callable[..., None]) -> Callable[..., None]:
    """Return `test` as one that runs its body in a fresh interpreter; its arguments must have a repr that makes them.

    Fails with the child's own traceback.
    """

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        _wait_for([_start(test, f"body(**{arguments!r})")])

    return run


def in_two_ranks(test: Callable[[int], None]) -> Callable[..., None]:
    """Return `test` as one whose body runs in two processes of a gloo group on this machine, and is given the rank."""

    def run(tmp_path: Path) -> None:
        # The end of the interpreter may abort in threads of gloo, so it is skipped.
        body = f"""
import datetime, os, torch.distributed as dist
limit, store = datetime.timedelta(seconds={TIMEOUT}), dist.FileStore({str(tmp_path / "rendezvous")!r}, 2)
dist.init_process_group("gloo", store=store, rank=%d, world_size=2, timeout=limit)
body(dist.get_rank())
dist.barrier()
os._exit(0)"""
        _wait_for([_start(test, body % rank, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME=_LOOPBACK) for rank in (0, 1)])

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.__wrapped_body__ = test  # type: ignore[attr-defined]
    return run


_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def _start(test: Callable[..., None], code: str, **environment: str) -> subprocess.Popen[str]:
    path = Path(test.__code__.co_filename)
    find = f"import {path.stem} as tests; test = tests.{test.__name__}"
    find += "; body = getattr(test, '__wrapped_body__', None) or test.__wrapped__\n"
    environment["PYTHONPATH"] = os.pathsep.join([str(path.parent), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", find + code],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
    )  # fmt: skip


def _wait_for(children: list[subprocess.Popen[str]]) -> None:
    """Wait until all have ended, kill those that hang, and fail with what each had to say."""
    deadline = time.monotonic() + TIMEOUT
    reports = []
    for child in children:
        try:
            _, error = child.communicate(timeout=max(0, deadline - time.monotonic()))
            ended = f"ended with {child.returncode}"
        except subprocess.TimeoutExpired:
            child.kill()
            _, error = child.communicate()
            ended = f"hung for {TIMEOUT} seconds"
        if child.returncode:
            reports.append(f"a child {ended}\n{error[-4000:]}")
    if reports:
        pytest.fail("\n".join(reports), pytrace=False)
