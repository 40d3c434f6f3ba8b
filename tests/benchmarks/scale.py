"""The time and the memory of a card of a huge tensor, beside the card of a small one with the same printed elements."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import torch
from card import make_card
from side_by_side import Spread, interleave, ratio, table, verdict
from torch.profiler import profile

SIDE = 100
CLAIM = 1.2


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table over dtypes and layouts; takes 2 GB of memory, or 20 MB if `quick`."""
    repeats = (25, 20) if quick else (250, 200)
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        small = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(0)).to(dtype)
        big = small.repeat(repeats)
        rows += [_row("contiguous", small, big, quick), _row("transposed", small.t(), big.t(), quick)]
        del big
    yield table(
        ("tensor", f"card of {SIDE**2:,} elements", f"card of {SIDE**2 * repeats[0] * repeats[1]:,} elements", "ratio",
         "claim", "bytes that torch allocates", "bytes that Python and NumPy allocate, peak"),
        rows,
    )  # fmt: skip


def _row(layout: str, small: torch.Tensor, big: torch.Tensor, quick: bool) -> tuple[object, ...]:
    names = {"make_card": make_card, "small": small, "big": big}
    seconds = interleave({"small": "make_card(small)", "big": "make_card(big)"}, names, rounds=50 if quick else 500)
    measured = ratio(seconds["big"], seconds["small"])
    return (
        f"{str(big.dtype).removeprefix('torch.')} {layout}",
        Spread.of(seconds["small"]).in_seconds(),
        Spread.of(seconds["big"]).in_seconds(),
        measured,
        verdict(CLAIM, measured),
        f"{_torch_nbytes(small):,} → {_torch_nbytes(big):,}",
        f"{_python_nbytes(small):,} → {_python_nbytes(big):,}",
    )


def _torch_nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes that torch allocates for one card, those that it frees again included."""
    with profile(profile_memory=True) as profiled:
        make_card(tensor)
    return sum(max(0, event.self_cpu_memory_usage) for event in profiled.events())


def _python_nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes that Python and NumPy hold for one card when they hold most."""
    tracemalloc.start()
    make_card(tensor)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
