"""The time and the memory of a card of a huge tensor, beside the card of a small one with the same printed elements."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import torch
from memory import make_card
from side_by_side import Figure, Spread, interleave, timed
from torch.profiler import profile

SIDE = 100
CLAIM = 1.2


def report(*, quick: bool) -> Iterator[Figure]:
    """Yield figures over dtypes and layouts; takes 2 GB of memory, or 20 MB if `quick`."""
    repeats = (25, 20) if quick else (250, 200)
    for dtype in (torch.float32, torch.bfloat16):
        small = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(0)).to(dtype)
        big = small.repeat(repeats)
        yield from _beside("contiguous", small, big, quick)
        yield from _beside("transposed", small.t(), big.t(), quick)
        del big


def _beside(layout: str, small: torch.Tensor, big: torch.Tensor, quick: bool) -> Iterator[Figure]:
    names = {"make_card": make_card, "small": small, "big": big}
    seconds = interleave({"small": "make_card(small)", "big": "make_card(big)"}, names, rounds=50 if quick else 500)
    what = f"a card of {big.numel():,} {str(big.dtype).removeprefix('torch.')}, {layout}"
    beside = f"one of {small.numel():,}"
    yield timed(what, seconds["big"], beside, seconds["small"], at_most=CLAIM)
    for by, count in (("torch", _torch_nbytes), ("Python and NumPy", _python_nbytes)):
        own, other = (Spread.of([count(tensor)]) for tensor in (big, small))
        yield Figure(f"{what}: what {by} allocate" + ("s" if by == "torch" else ", peak"), own, "bytes", beside, other)


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
