"""The time, the memory and the page of one card of a thousand ranks, and what listing their checkpoint takes.

The ranks are simulated, and answer at once; the checkpoint's files of items are empty.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from side_by_side import Figure, Spread, peak_mib, timed
from torch import nn

import tensornp as tnp

sys.path.insert(0, str(Path(__file__).parents[1]))

from lone_rank import LoneRank
from written_dcp import of_many_ranks

SECONDS, MIB, PAGE_KB, TIMES_PLAIN = 20, 1024, 150, 2
TIMES_PICKLE, LISTING_MB = 3, 2000
_LISTED = """
import sys, time, pickle, torch.distributed.checkpoint.filesystem
import tensornp as tnp
tnp.weights
begun = time.process_time()
{}
seconds = time.process_time() - begun
lines = open("/proc/self/status") if sys.platform == "linux" else ["VmHWM: 0"]
print(seconds, *(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""
_HOWS = "found = tnp.weights(sys.argv[1])", 'found = pickle.load(open(sys.argv[1] + "/.metadata", "rb"))'
NUM_GROUPS = 4
"""Ranks that have weights of their own, but for the last which stands for all others."""


class Simulated:
    """Ranks that know what they have: the first few lack a weight each."""

    def __init__(self, num_ranks: int, num_weights: int) -> None:
        self.ids, self._num_weights = range(num_ranks), num_weights
        self._lists = [tuple(self._rows(lacking)) for lacking in range(NUM_GROUPS)]

    def _rows(self, lacking: int) -> Iterator[tuple[Any, ...]]:
        for i in range(self._num_weights):
            if i != 7 * lacking or not lacking:
                name = f"model.layers.{i // 10}.block.part{i % 10}.weight"
                yield name, "parameter", (1024, 1024), "bfloat16", 2**21, True, "cuda", "S(0) on dp 1,000", ""

    def submit(self, id: int, function: Callable[..., Any], version: str, question: str, *details: Any) -> Any:
        """Answer at once."""
        group = id if id < NUM_GROUPS else 0
        found = self._lists[group], self._num_weights * 2**20, self._num_weights * 2**11
        future: Future[Any] = Future()
        future.set_result((version, id, len(self.ids), "", found))
        return future


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield the figures of 1,000 ranks of 100,000 weights, of a hundredth of these if `quick`."""
    num_weights = 1_000 if quick else 100_000
    yield from _sharded(2_000 if quick else 100_000)
    yield from _checkpoint(12 if quick else 1_200)
    transport = Simulated(1_000, num_weights)
    gc.collect()
    begun = time.perf_counter()
    found = tnp.ranks(transport, timeout=1000).weights("model")
    page = found._repr_html_()
    seconds = time.perf_counter() - begun
    assert len(found) == num_weights and len(found.differences()) == NUM_GROUPS - 1
    what = f"1,000 ranks of {num_weights:,} weights, in {NUM_GROUPS} kinds"
    yield Figure(f"{what}: asked, put together, as text and page", Spread.of([seconds]), at_most=SECONDS)
    peak = peak_mib(lambda: tnp.ranks(transport, timeout=1000).weights("model")._repr_html_())
    yield Figure(f"{what}: memory that is taken anew, peak", peak, "MiB", at_most=MIB)
    yield Figure(f"{what}: the page", Spread.of([len(page.encode()) / 1e3]), "kB", at_most=PAGE_KB)


def _sharded(num_weights: int) -> Iterator[Figure]:
    """Yield what it takes to list so many sharded parameters on one rank of four, beside plain ones."""
    rank = LoneRank()
    whole = rank.tensors()["sharded"]
    models = [
        nn.ParameterList([nn.Parameter(one.clone()) for _ in range(num_weights)])
        for one in (whole, whole._local_tensor)
    ]
    sharded, plain = (
        [_cpu_seconds(lambda model=model: tnp.weights(model).totals) for _ in range(3)] for model in models
    )
    what = f"{num_weights:,} DTensors in memory: listed, CPU time"
    yield timed(what, sharded, "plain parameters", plain, at_most=TIMES_PLAIN)


def _cpu_seconds(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def _checkpoint(num_weights: int) -> Iterator[Figure]:
    """Yield what it takes to list what 1,000 ranks have saved of so many weights, beside torch's own records of it."""
    with TemporaryDirectory() as folder:
        of_many_ranks(Path(folder), 1_000, num_weights)
        own, torchs = (_listed(_LISTED.format(how), folder) for how in _HOWS)
    what, beside = f"a checkpoint of {1_000 * num_weights:,} chunks is listed", "pickle.load of its metadata"
    yield timed(f"{what}: CPU time", [own[0]], beside, [torchs[0]], at_most=TIMES_PICKLE)
    if own[1]:
        peaks = [Spread.of([one]) for one in (own[1], torchs[1])]
        yield Figure(f"{what}: memory of the process, peak", peaks[0], "MB", beside, peaks[1], at_most=LISTING_MB)


def _listed(program: str, folder: str) -> tuple[float, float]:
    """Return the seconds and the MB that a program took, in a process of its own."""
    command = [sys.executable, "-c", program, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, kib = map(float, done.stdout.split())
    return seconds, kib * 1024 / 1e6
