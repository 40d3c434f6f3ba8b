"""What statistics, distributions and comparisons cost, beside a plain read and plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from side_by_side import Figure, interleave, peak_mib, timed

from tensornp.core.values.compare.compare import compare
from tensornp.core.values.locate import locate
from tensornp.core.values.pictures.planes import plane_map
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.compute import scan

NAIVE = "(t.isnan().sum(), t.isinf().sum(), (t == 0).sum(), t.min(), t.max(), t.mean(), t.std(correction=0))"
"""Seven figures as people write them."""
NAIVE_PAIR = (
    "(torch.equal(a, b), (a != b).sum(), (b - a).abs().max(), (b - a).norm() / a.norm(), "
    "1 - torch.cosine_similarity(a, b, 0), (a.isfinite() & b.isfinite()).sum(), (a != b).nonzero()[:1])"
)
CLAIMS = {"the figures": 1.7, "figures and distribution": 4.5}
"""How many times as long as a plain read a pass with numba takes at most."""
COMPARE_CLAIM, COMPARE_READ_CLAIM = 1 / 8, 25
"""A comparison beside torch, and by NumPy alone beside a plain read."""
READ = "a plain read (np.max by blocks)"


def report(*, quick: bool) -> Iterator[Figure | str]:
    numel = 10_000_000 if quick else 100_000_000
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield f"`tnp.stats` has read {'with' if fast.load() is not None else 'without'} numba."
    try:
        yield from _figures(quick)
        yield from _comparisons(numel, quick)
    finally:
        torch.set_num_threads(threads)
    yield from _memory(numel)


def _normal(numel: int) -> torch.Tensor:
    return torch.randn(numel, generator=torch.Generator().manual_seed(0))


def _blocks_read(array: np.ndarray[Any, Any]) -> None:
    for start in range(0, len(array), 2**17):
        array[start : start + 2**17].max()


def _by_numpy(*arguments: Any, **options: Any) -> Any:
    with mock.patch.object(fast, "load", lambda: None):
        return scan(*arguments, **options)


def _figures(quick: bool) -> Iterator[Figure]:
    # Of fewer, a part stays in the last cache from one round to the next.
    numel = 100_000_000
    t = _normal(numel)
    statements = {
        "the figures": "scan(t, histogram=None, num_threads=1)",
        "the figures, two threads": "scan(t, histogram=None, num_threads=2)",
        "the figures by NumPy alone": "by_numpy(t, histogram=None, num_threads=1)",
        "figures and distribution": "scan(t, histogram='all', num_threads=1)",
        "figures and distribution, two threads": "scan(t, histogram='all', num_threads=2)",
        "figures and distribution by NumPy alone": "by_numpy(t, histogram='all', num_threads=1)",
        "seven torch calls": NAIVE,
    }
    names = {"scan": scan, "by_numpy": _by_numpy, "t": t, "a": t.clone().numpy(), "read": _blocks_read}
    seconds = interleave({READ: "read(a)", **statements}, names, rounds=3 if quick else 15)
    read, size = seconds.pop(READ), t.nbytes / 1e9
    for name, taken in seconds.items():
        claim = CLAIMS.get(name) if fast.load() is not None else None
        yield timed(f"{name} of {numel:,} float32", taken, READ, read, at_most=claim, gigabytes=size)


def _comparisons(numel: int, quick: bool) -> Iterator[Figure]:
    """Yield a comparison beside what torch says of two, and of each dtype beside a read of both; all differ."""
    a = _normal(numel)
    b = a + 1e-3 * torch.randn(numel, generator=torch.Generator().manual_seed(1))
    statements = {"compare": "compare(a, b)", "torch": NAIVE_PAIR}
    seconds = interleave(statements, {"compare": compare, "torch": torch, "a": a, "b": b}, rounds=3 if quick else 7)
    what = f"compare of two of {numel:,}"
    yield timed(what, seconds["compare"], "seven torch expressions", seconds["torch"], at_most=COMPARE_CLAIM)
    for dtype in ("float64", "float32", "bfloat16", "float16", "int64", "int32"):
        first, second = ((1000 * one).to(getattr(torch, dtype)) for one in (a, a * 1.1 + 1))
        x, y = (one.view(getattr(torch, f"int{8 * one.itemsize}")).numpy() for one in (first, second))
        names = {"compare": compare, "first": first, "second": second, "read": _blocks_read, "x": x, "y": y}
        seconds = interleave(
            {"own": "compare(first, second)", READ: "read(x); read(y)"}, names, rounds=3 if quick else 7
        )
        claim = COMPARE_READ_CLAIM if dtype in ("float32", "float64", "int32", "int64") else None
        yield timed(
            f"compare of two of {numel:,} {dtype}", seconds["own"], f"{READ} of both", seconds[READ], at_most=claim
        )


def _memory(numel: int) -> Iterator[Figure]:
    t = _normal(numel)
    other = t + 1
    calls = {
        "stats, without a distribution": (16, lambda: scan(t, histogram=None)),
        "stats, with all of it": (32, lambda: scan(t, histogram="all")),
        "locate": (16, lambda: locate(t)),
        "a heat map": (16, lambda: plane_map(t.view(-1, 1000))),
        "compare": (32, lambda: compare(t, other)),
    }
    for name, (claim, call) in calls.items():
        call()
        yield Figure(f"peak of new memory: {name}, {numel:,} float32", peak_mib(call), "MiB", at_most=claim)
