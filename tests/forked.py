"""Processes that may die and cost little: forked from one that has imported what tests need; without fork, spawned."""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.forkserver
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Ending = tuple[str, Any]
"""How a task ended: "returned" what, "raised" which traceback, "skipped" why, or "died" of what."""
TIMEOUT_S = 1000


class Forked:
    """A process that carries out tasks, one after the other, until one of them does not return."""

    def __init__(self, tasks: Sequence[Callable[..., Any]], *arguments: Any) -> None:
        context = _context()
        self._count = len(tasks)
        # What it says is of interest only if it dies.
        descriptor, self._log = tempfile.mkstemp(prefix="forked-")
        os.close(descriptor)
        self._pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_report, args=(theirs, self._log, tasks, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def endings(self) -> list[Ending]:
        """Return how each task ended, in order, up to the first that did not return."""
        ended: list[Ending] = []
        try:
            while len(ended) < self._count and all(how == "returned" for how, _ in ended):
                if not self._pipe.poll(TIMEOUT_S):
                    self._process.kill()
                ended.append(self._pipe.recv())
        except EOFError:
            self._process.join()
            ended.append(
                ("died", f"of {self._process.exitcode}\n{Path(self._log).read_text(errors='replace')[-4000:]}")
            )
        finally:
            self._process.join()
            Path(self._log).unlink()
        return ended


def run(task: Callable[..., Any], *arguments: Any) -> Ending:
    """Return how `task` ended in a process of its own."""
    return Forked([task], *arguments).endings()[0]


def run_each(tasks: Sequence[Callable[..., Any]], *arguments: Any) -> list[Ending]:
    """Return how each of `tasks` ended, by as few processes as can tell."""
    ended: list[Ending] = []
    while len(ended) < len(tasks):
        endings = Forked(tasks[len(ended) :], *arguments).endings()
        # What does not return after another task in the same process may be the fault of that one.
        ended += [ending for ending in endings if ending[0] == "returned"] or endings[:1]
    return ended


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    # IPython puts a module of its own in the place of the main one, which multiprocessing then cannot ask.
    vars(sys.modules["__main__"]).setdefault("__spec__", None)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forked_server"])
    # Python 3.11 does not hand its own path on to the server, which then imports nothing, and says nothing.
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), path]))
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH") if path is None else os.environ.update(PYTHONPATH=path)
    return context


def _report(pipe: Any, log: str, tasks: Sequence[Callable[..., Any]], arguments: tuple[Any, ...]) -> None:
    with open(log, "w") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
    if hasattr(os, "setsid"):
        # Libraries that start processes of their own, as MPI does, end whole groups of these.
        os.setsid()
    faulthandler.enable()
    import torch

    torch.set_num_threads(1)
    # Whatever ends this process, it may have some of its own.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    # What torch warns of once, and a maker may have made it say already, it would first say to someone who only looks.
    torch.set_warn_always(True)
    for task in tasks:
        try:
            pipe.send(("returned", task(*arguments)))
        except BaseException as error:
            is_skip = type(error).__name__ == "Skipped"
            pipe.send(("skipped", str(error)) if is_skip else ("raised", traceback.format_exc()))
            break
    # Leave without the goodbyes of libraries, which may hang or crash.
    pipe.close()
    os._exit(0)
