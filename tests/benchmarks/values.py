"""What statistics, distributions, places, heat maps and comparisons cost, beside a plain read and plain torch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from side_by_side import Spread, interleave, ratio, table, verdict

from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.compare.compare import compare
from tensornp.core.values.find.locate import locate
from tensornp.core.values.pictures.planes import plane_map
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.compute import scan
from tensornp.render.tensor.card import tensor_html, tensor_text

NAIVE = "(t.isnan().sum(), t.isinf().sum(), (t == 0).sum(), t.min(), t.max(), t.mean(), t.std(correction=0))"
"""Seven figures as people write them."""
NAIVE_PAIR = (
    "(torch.equal(a, b), (a != b).sum(), (b - a).abs().max(), (b - a).norm() / a.norm(), "
    "1 - torch.cosine_similarity(a, b, 0), (a.isfinite() & b.isfinite()).sum(), (a != b).nonzero()[:1])"
)
CLAIMS = {"the figures": 1 / 0.6, "figures and distribution": 1 / 0.3}
"""How many times as long as a plain read a pass takes at most."""
SAMPLED_CLAIM, EXACT_CLAIM, HEATMAP_CLAIM, LOCATE_CLAIM = 1.1, 5, 1.5, 1.2
COMPARE_CLAIM = 1 / 8
MIB = 2**20


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table for each question."""
    numel = 10_000_000 if quick else 100_000_000
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield _figures(numel, quick)
        yield _dtypes(numel, quick)
        yield _beside_figures(numel, quick)
        yield _comparison(numel, quick)
    finally:
        torch.set_num_threads(threads)
    yield _cards(quick)
    yield _memory(numel)


def _normal(numel: int) -> torch.Tensor:
    return torch.randn(numel, generator=torch.Generator().manual_seed(0))


def _blocks_read(array: np.ndarray[Any, Any]) -> None:
    for start in range(0, len(array), 2**17):
        array[start : start + 2**17].max()


def _by_numpy(*arguments: Any, **options: Any) -> Any:
    """Scan without numba."""
    with mock.patch.object(fast, "load", lambda: None):
        return scan(*arguments, **options)


def _figures(numel: int, quick: bool) -> str:
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
    seconds = interleave({"a plain read (np.max by blocks)": "read(a)", **statements}, names, rounds=5 if quick else 15)
    read = next(iter(seconds.values()))
    rows = []
    for name, taken in seconds.items():
        speed = Spread.of(t.nbytes / 1e9 / s for s in taken)
        beside = ratio(taken, read)
        claim = verdict(CLAIMS[name], beside) if fast.load() is not None and name in CLAIMS else ""
        rows.append((name, f"{speed} GB/s", beside, claim))
    library = "with numba" if fast.load() is not None else "without numba"
    return table((f"{numel:,} float32, {library}", "speed", "beside a plain read", "claim"), rows)


def _dtypes(numel: int, quick: bool) -> str:
    t = _normal(numel)
    rows = []
    for dtype in ("float32", "float64", "bfloat16", "float16", "float8_e4m3fn", "int32", "int8", "complex64"):
        of = (t * 20).to(getattr(torch, dtype)) if dtype != "complex64" else t.view(torch.complex64)
        statements = {
            "own": "scan(t, histogram='all', num_threads=1)",
            "numpy": "by_numpy(t, histogram='all', num_threads=1)",
        }
        taken = interleave(statements, {"scan": scan, "by_numpy": _by_numpy, "t": of}, rounds=3 if quick else 7)
        speeds = (f"{Spread.of(of.numel() / 1e9 / s for s in one)} G elements/s" for one in taken.values())
        rows.append((dtype, *speeds, ratio(taken["own"], taken["numpy"])))
    return table(("figures and distribution of all of", "speed", "by NumPy alone", "beside NumPy alone"), rows)


def _beside_figures(numel: int, quick: bool) -> str:
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
    statements = {"the figures": "by_numpy(t, histogram=None, num_threads=1)"}
    statements |= {name: statement for name, (_, statement) in claims.items()}
    names = {"by_numpy": _by_numpy, "t": t, "last": last, "plane_map": plane_map, "locate": locate}
    seconds = interleave(statements, names, rounds=3 if quick else 7)
    rows = []
    for name, taken in seconds.items():
        beside = ratio(taken, seconds["the figures"])
        claim = verdict(claims[name][0], beside) if name in claims else ""
        rows.append((name, Spread.of(taken).in_seconds(), beside, claim))
    return table((f"{t.numel():,} float32, one thread, by NumPy alone", "time", "beside the figures", "claim"), rows)


def _comparison(numel: int, quick: bool) -> str:
    a = _normal(numel)
    b = a + 1e-3 * torch.randn(numel, generator=torch.Generator().manual_seed(1))
    statements = {"compare": "compare(a, b)", "torch": NAIVE_PAIR}
    seconds = interleave(statements, {"compare": compare, "torch": torch, "a": a, "b": b}, rounds=3 if quick else 7)
    beside = ratio(seconds["compare"], seconds["torch"])
    own, naive = (Spread.of(seconds[key]).in_seconds() for key in ("compare", "torch"))
    headings = (f"compare of two of {numel:,}", "seven torch expressions", "compare / torch", "claim")
    return table(headings, [(own, naive, beside, verdict(COMPARE_CLAIM, beside))])


def _make_card(tensor: torch.Tensor, options: DisplayOptions) -> tuple[str, str]:
    summary = summarize(tensor, options)
    return tensor_text(summary), tensor_html(summary, options)


def _cards(quick: bool) -> str:
    rows = []
    on, off = DisplayOptions(), DisplayOptions(stats="off")
    for numel in (12, 10_000, 1_000_000):
        t = _normal(numel).view(4, -1)
        statements = {"with": "card(t, on)", "without": "card(t, off)", "figures": "scan(t)"}
        seconds = interleave(statements, {"card": _make_card, "t": t, "on": on, "off": off, "scan": scan}, rounds=20)
        bound = [bare + 1.5 * own + 0.0005 for bare, own in zip(seconds["without"], seconds["figures"], strict=True)]
        beside = ratio(seconds["with"], bound)
        times = (Spread.of(seconds[key]).in_seconds() for key in ("without", "with", "figures"))
        rows.append((f"{numel:,}", *times, beside, verdict(1, beside)))
    headings = (
        "float32",
        "card without its line",
        "with it",
        "figures alone",
        "with it / (without + 1.5 × figures + 0.5 ms)",
        "claim",
    )
    return table(headings, rows)


def _memory(numel: int) -> str:
    t, rows = _normal(numel), []
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
        tracemalloc.start()
        call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        rows.append(
            (name, f"{peak / MIB:.1f} MiB", f"< {claim} MiB: {'holds' if peak < claim * MIB else 'DOES NOT HOLD'}")
        )
    return table((f"of {numel:,} float32", "peak of new memory that NumPy and Python take", "claim"), rows)
