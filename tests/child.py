"""Tests that run in processes of their own, since they change one for good, could end it, or could hang."""

from __future__ import annotations

import datetime
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Forked

TIMEOUT_S = 1000


def in_child(test: Callable[..., None]) -> Callable[..., None]:
    """Return `test` as one that runs its body in a fresh interpreter; its arguments must have a repr that makes them.

    Fails with the child's own traceback.
    """

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        code = f"import child; child.run_body({test.__code__.co_filename!r}, {test.__name__!r}, {arguments!r})"
        path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        child = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", code],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
        try:
            _, error = child.communicate(timeout=TIMEOUT_S)
            ended = f"ended with {child.returncode}"
        except subprocess.TimeoutExpired:
            child.kill()
            _, error = child.communicate()
            ended = f"hung for {TIMEOUT_S} seconds"
        if child.returncode:
            pytest.fail(f"a child {ended}\n{error[-4000:]}", pytrace=False)

    return run


def in_fork(test: Callable[..., None]) -> Callable[..., None]:
    """Return `test` as one that runs its body in a process that costs little, since torch is imported there already.

    It is not fresh: `forked_server` says what has been done there. Its arguments must be such as can be pickled.
    """

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        _expect_return(Forked([run_body], *_place_of(test), arguments))

    return run


def in_two_ranks(test: Callable[[int], None]) -> Callable[..., None]:
    """Return `test` as one whose body runs in two processes of a gloo group, given its `rank`."""

    def run(tmp_path: Path) -> None:
        rendezvous = str(tmp_path / "rendezvous")
        _expect_return(*[Forked([run_rank], *_place_of(test), rendezvous, rank) for rank in (0, 1)])

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.__wrapped_body__ = test  # type: ignore[attr-defined]
    return run


def run_body(file: str, name: str, arguments: dict[str, Any]) -> None:
    """Run the body of the test with this name in this file."""
    sys.path.insert(0, str(Path(file).parent))
    test = getattr(importlib.import_module(Path(file).stem), name)
    body = getattr(test, "__wrapped_body__", None) or test.__wrapped__
    body(**arguments)


def run_rank(file: str, name: str, rendezvous: str, rank: int) -> None:
    """Run the body of a test as one of two ranks, which meet at a file."""
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    store, limit = dist.FileStore(rendezvous, 2), datetime.timedelta(seconds=TIMEOUT_S)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)
    run_body(file, name, {"rank": rank})
    dist.barrier()


def _place_of(test: Callable[..., None]) -> tuple[str, str]:
    return test.__code__.co_filename, test.__name__


def _expect_return(*children: Forked) -> None:
    """Wait for all children, and fail with what each had to say that did not return."""
    endings = [ending for child in children for ending in child.endings()]
    if failed := [f"a child {how} {what}" for how, what in endings if how not in ("returned", "skipped")]:
        pytest.fail("\n".join(failed), pytrace=False)
    if skipped := [what for how, what in endings if how == "skipped"]:
        pytest.skip(skipped[0])
