"""The time of `to_numpy`, beside the line of plain PyTorch that does the same where it can."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from side_by_side import Spread, interleave, ratio, table, verdict

from tensornp import to_numpy

CLAIM = 4


def report(*, quick: bool) -> Iterator[str]:
    """Yield a table over ordinary CPU tensors, which share memory, and bfloat16 ones, which are widened."""
    plain, widened = "t.detach().cpu().numpy()", "t.detach().cpu().float().numpy()"
    small = torch.ones(20, 50)
    tensors = {
        "float32 (20, 50)": (small, plain),
        "Parameter (20, 50)": (torch.nn.Parameter(small.clone()), plain),
        "transposed (50, 20)": (small.t(), plain),
        "0-d": (torch.tensor(1.0), plain),
        "bfloat16 (20, 50)": (small.bfloat16(), widened),
        "bfloat16 (1000, 1000)": (torch.ones(1000, 1000, dtype=torch.bfloat16), widened),
    }
    rows = []
    for name, (tensor, line) in tensors.items():
        statements = {"tensornp": "to_numpy(t)", "plain": line}
        seconds = interleave(statements, {"to_numpy": to_numpy, "t": tensor}, rounds=50 if quick else 500)
        measured = ratio(seconds["tensornp"], seconds["plain"])
        times = (Spread.of(taken).in_seconds() for taken in seconds.values())
        claim = verdict(CLAIM, measured) if line == plain else ""
        rows.append((name, *times, f"`{line}`", measured, claim))
    yield table(("tensor t", "`to_numpy(t)`", "plain PyTorch", "which is", "ratio", "claim"), rows)
