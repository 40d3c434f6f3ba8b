"""What statistics, distributions, places, heat maps and comparisons cost, beside a plain read and plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from memory import make_card
from side_by_side import Figure, interleave, peak_mib, timed

from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.compare.compare import compare
from tensornp.core.values.locate import locate
from tensornp.core.values.pictures.planes import difference_of, overview_of, plane_map
from tensornp.core.values.shown.window import subject_of, window_of
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.compute import ALL_NUMEL, scan

NAIVE = "(t.isnan().sum(), t.isinf().sum(), (t == 0).sum(), t.min(), t.max(), t.mean(), t.std(correction=0))"
"""Seven figures as people write them."""
NAIVE_PAIR = (
    "(torch.equal(a, b), (a != b).sum(), (b - a).abs().max(), (b - a).norm() / a.norm(), "
    "1 - torch.cosine_similarity(a, b, 0), (a.isfinite() & b.isfinite()).sum(), (a != b).nonzero()[:1])"
)
CLAIMS = {"the figures": 1.7, "figures and distribution": 4.5}
"""How many times as long as a plain read a pass with numba takes at most."""
SAMPLED_CLAIM, EXACT_CLAIM, HEATMAP_CLAIM, LOCATE_CLAIM = 1.1, 5, 1.5, 1.2
COMPARE_CLAIM = 1 / 8
COMPARE_READ_CLAIM, PLANE_CLAIM, CHANGE_CLAIM = 25, 16, 45
"""By NumPy alone, beside a plain read: a comparison, statistics and sums along an axis, and the map of a change."""
READ = "a plain read (np.max by blocks)"


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield figures of each."""
    numel = 10_000_000 if quick else 100_000_000
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield f"`tnp.stats` has read {'with' if fast.load() is not None else 'without'} numba."
    try:
        yield from _figures(quick)
        yield from _dtypes(numel, quick)
        yield from _beside_figures(numel, quick)
        yield from _comparisons(numel, quick)
        yield from _planes(numel, quick)
    finally:
        torch.set_num_threads(threads)
    yield from _cards()
    yield from _memory(numel)


def _normal(numel: int) -> torch.Tensor:
    return torch.randn(numel, generator=torch.Generator().manual_seed(0))


def _blocks_read(array: np.ndarray[Any, Any]) -> None:
    for start in range(0, len(array), 2**17):
        array[start : start + 2**17].max()


def _by_numpy(*arguments: Any, **options: Any) -> Any:
    """Scan without numba."""
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


def _dtypes(numel: int, quick: bool) -> Iterator[Figure]:
    t = _normal(numel)
    for dtype in ("float32", "float64", "bfloat16", "float16", "float8_e4m3fn", "int32", "int8", "complex64"):
        of = (t * 20).to(getattr(torch, dtype)) if dtype != "complex64" else t.view(torch.complex64)
        statements = {
            "own": "scan(t, histogram='all', num_threads=1)",
            "numpy": "by_numpy(t, histogram='all', num_threads=1)",
        }
        taken = interleave(statements, {"scan": scan, "by_numpy": _by_numpy, "t": of}, rounds=3 if quick else 7)
        what = f"figures and distribution of {of.numel():,} {dtype}"
        yield timed(what, taken["own"], "NumPy alone", taken["numpy"], gigabytes=of.nbytes / 1e9)


def _beside_figures(numel: int, quick: bool) -> Iterator[Figure]:
    side = int(numel**0.5)
    t = _normal(side * side).view(side, side)
    last = t.clone()
    last[-1, -1] = float("nan")
    claims = {
        "with a sampled distribution": (SAMPLED_CLAIM, "by_numpy(t, histogram='auto', num_threads=1)"),
        "with an exact one": (EXACT_CLAIM, "by_numpy(t, histogram='all', num_threads=1)"),
        "a heat map": (HEATMAP_CLAIM, "plane_map(t)"),
        "locate of one last NaN": (LOCATE_CLAIM, "locate(last)"),
    }
    if t.numel() <= ALL_NUMEL:
        # Nothing is sampled of so few.
        del claims["with a sampled distribution"]
    statements = {"figures": "by_numpy(t, histogram=None, num_threads=1)"}
    statements |= {name: statement for name, (_, statement) in claims.items()}
    names = {"by_numpy": _by_numpy, "t": t, "last": last, "plane_map": plane_map, "locate": locate}
    seconds = interleave(statements, names, rounds=3 if quick else 7)
    figures, beside = seconds.pop("figures"), "the figures, by NumPy alone"
    for name, taken in seconds.items():
        yield timed(f"{name}, {t.numel():,} float32", taken, beside, figures, at_most=claims[name][0])


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


def _planes(numel: int, quick: bool) -> Iterator[Figure]:
    """Yield what is told of the rows and columns of a square, and of a change in it, beside a read of what it reads."""
    side = int(numel**0.5)
    window = window_of((side, side))
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        square = _normal(side * side).view(side, side)
        a, b = square.to(dtype), (square * 1.1 + 1).to(dtype)
        x, y = (one.clone().view(getattr(torch, f"int{8 * one.itemsize}")).view(-1).numpy() for one in (a, b))
        one = {"figures of each row": "scan(a, axis=0)", "figures of each column": "scan(a, axis=1)"}
        both = {
            "a map of a change": "overview(subject(difference(subject(a), subject(b))), window)",
        }
        names = {
            "scan": scan,
            "overview": overview_of,
            "difference": difference_of,
            "subject": subject_of,
            "window": window,
        }
        names |= {"read": _blocks_read}
        names |= {"a": a, "b": b, "x": x, "y": y}
        for statements, read in ((one, "read(x)"), (both, "read(x); read(y)")):
            seconds = interleave({READ: read, **statements}, names, rounds=3 if quick else 7)
            beside = seconds.pop(READ)
            for name, taken in seconds.items():
                what = f"{name}, {side:,} × {side:,} {str(dtype).removeprefix('torch.')}"
                claim = CHANGE_CLAIM if name == "a map of a change" else PLANE_CLAIM
                yield timed(what, taken, READ, beside, at_most=claim if dtype == torch.float32 else None)


def _cards() -> Iterator[Figure]:
    on, off = DisplayOptions(), DisplayOptions(stats="off")
    for numel in (12, 10_000, 1_000_000):
        t = _normal(numel).view(4, -1)
        statements = {"with": "card(t, None, on)", "without": "card(t, None, off)", "figures": "scan(t)"}
        seconds = interleave(statements, {"card": make_card, "t": t, "on": on, "off": off, "scan": scan}, rounds=20)
        bound = [bare + 1.5 * own + 0.0005 for bare, own in zip(seconds["without"], seconds["figures"], strict=True)]
        beside = "a card without its line, 1.5 times its figures and 0.5 ms"
        yield timed(f"a card of {numel:,} float32", seconds["with"], beside, bound, at_most=1)


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
